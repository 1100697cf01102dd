import ArgumentParser
import InstarSchema

/// How a command writes its answer.
struct OutputOptions: ParsableArguments {
  @Flag(help: "Print JSON: one object per line, on standard output.")
  var json = false

  /// Writes one answer: an object, or lines with its errors on standard error.
  func write(_ answer: some Answer) { prepared(answer)() }

  /// Returns what writes the answer. Its text is made here, so that several threads can make texts at once.
  func prepared(_ answer: some Answer) -> @Sendable () -> Void {
    if json {
      let line = Result { () throws(InstarError) in try Console.line(json: answer) }
      return { Console.write(json: line) }
    }
    let (lines, errors) = (answer.lines, answer.errors)
    return {
      Console.write(lines)
      for error in errors { Console.note(error) }
    }
  }

  /// As `prepared(_:)`, of an answer that is JSON already: one line, without its newline.
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
