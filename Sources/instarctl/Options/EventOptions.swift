import ArgumentParser

/// What a command prints about the steps of its runs.
struct EventOptions: ParsableArguments {
  @Flag(
    help:
      "With --json: also print each step of a run as an object with the key 'step', progress within long stages included."
  )
  var events = false

  func validate(with output: OutputOptions) throws {
    if events, !output.json {
      throw ValidationError("--events prints JSON: add --json")
    }
  }

  func extent(json: Bool) -> RunProgress.Extent {
    if events { return .events }
    return json ? .output : .steps
  }
}
