import ArgumentParser
import InstarSchema
import InstarWire

/// The options of the commands that stop a rollout.
struct RolloutStopOptions: ParsableArguments {
  @Option(help: ArgumentHelp("The plan.", valueName: "name"), completion: .plans)
  var plan: String

  @Option(
    help: ArgumentHelp("The reason, which 'instarctl rollout show' shows.", valueName: "text"))
  var why: String?

  @OptionGroup var coordinator: CoordinatorOptions
  @OptionGroup var output: OutputOptions

  /// Stops the rollout in this way.
  func perform(_ action: RolloutRequest.Action) throws(InstarError) -> ExitStatus {
    if let why {
      try Hold.requireShort(why, "cannot \(action.rawValue) the rollout of '\(plan)'")
    }
    var request = coordinator.request(action, plan)
    request.why = why
    return try coordinator.perform(request, output)
  }
}
