import ArgumentParser
import InstarSchema
import InstarWire

/// What a stage of a plan may use.
struct StageLimitOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Stop a stage that takes longer, from 1s to 720h. (default: 1h)", valueName: "duration"),
    transform: { try DurationArgument($0, in: .seconds(1)...(.seconds(30 * 86_400))) })
  var stageTimeLimit = DurationArgument(.seconds(3600))

  @Option(
    help: ArgumentHelp(
      "End a plugin that uses more memory, \(SizeText.workerMemoryBounds). (default: 4GiB)",
      valueName: "size"),
    transform: { text in
      guard let bytes = SizeText.parse(text), SizeText.workerMemory.contains(bytes) else {
        throw ValidationError(
          "'\(text)' is not a size \(SizeText.workerMemoryBounds); write for example 512MiB or 4GiB"
        )
      }
      return bytes
    })
  var workerMemory = MigrationRequest.defaultWorkerMemoryBytes

  func apply(to request: inout MigrationRequest) {
    request.stageTimeLimitSeconds = stageTimeLimit.duration.inSeconds
    request.workerMemoryBytes = workerMemory
  }
}
