import ArgumentParser
import InstarSchema

/// How a command writes its output.
struct OutputOptions: ParsableArguments {
  @Flag(help: "Print JSON: one object per line, on standard output.")
  var json = false

  /// Writes one output: an object, or lines with its errors on standard error.
  func write(_ output: some CommandOutput) { prepared(output)() }

  /// Returns what writes the output. Its text is made here, so that several threads can make texts at once.
  func prepared(_ output: some CommandOutput) -> @Sendable () -> Void {
    if json {
      let line = Result { () throws(InstarError) in try Console.line(json: output) }
      return { Console.write(json: line) }
    }
    let (lines, errors) = (output.lines, output.errors)
    return {
      Console.write(lines)
      for error in errors { Console.note(error) }
    }
  }

  /// As `prepared(_:)`, of an output that is JSON already: one line, without its newline.
  func prepared(json text: String) -> @Sendable () -> Void {
    let line = Console.line(json: text)
    return { Console.write(json: .success(line)) }
  }

  /// Writes an error that is about the command as a whole.
  func report(_ error: InstarError) {
    if json { Console.write(json: ["error": error]) }
    Console.note(error)
  }
}
