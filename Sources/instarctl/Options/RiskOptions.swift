import ArgumentParser
import InstarWire

/// What the user accepts that a run would otherwise refuse.
struct RiskOptions: ParsableArguments {
  @Flag(help: "Adopt a store even if it differs from the version that --adopt names.")
  var yes = false

  @Flag(help: "Continue even if a change of type loses values that no code of the plan writes.")
  var acceptLoss = false

  func apply(to request: inout MigrationRequest) {
    request.adoptsDifferences = yes
    request.acceptsLoss = acceptLoss
  }
}
