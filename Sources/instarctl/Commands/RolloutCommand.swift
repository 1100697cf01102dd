import ArgumentParser

/// `instarctl rollout`
struct RolloutCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rollout",
    abstract: "Migrate the stores of many hosts in waves, and stop all hosts if too many fail.",
    discussion: """
        instarctl rollout create --plan NotesPlan --waves 10%,50% --budget 0.5%
        instarctl rollout show
        instarctl rollout halt --plan NotesPlan --why 'notes are lost'

      Works on any host with the package instar-coordinator and a certificate of the fleet. The hosts \
      take turns through etcd; 'coordinator' in instard.yml names its members. On a single host, \
      'rollout' in instard.yml does the same for its stores.

      The exit status is 6 if etcd cannot be reached, and 3 if the rollout does not exist or does not allow the order.
      """,
    subcommands: [
      RolloutCreateCommand.self, RolloutShowCommand.self, RolloutPauseCommand.self,
      RolloutResumeCommand.self, RolloutHaltCommand.self, RolloutWatchCommand.self,
    ])
}
