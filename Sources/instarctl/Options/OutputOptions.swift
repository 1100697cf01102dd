import ArgumentParser
import InstarSchema

/// How a command writes its answer.
struct OutputOptions: ParsableArguments {
  @Flag(help: "Print JSON: one object a line on standard output.")
  var json = false

  /// Writes one answer: an object, or lines with its error on standard error.
  func write(_ answer: some Answer) {
    if json {
      Console.write(json: answer)
    } else {
      Console.write(answer.lines)
      if let error = answer.error { Console.note(error) }
    }
  }

  /// Writes an error that is about the command as a whole.
  func report(_ error: InstarError) {
    if json { Console.write(json: ["error": error]) }
    Console.note(error)
  }
}
