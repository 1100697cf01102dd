import ArgumentParser
import InstarSchema

/// What a command does about a store that other processes use.
struct BusyOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Wait this long for other processes to release a store, up to 1h. After 1 s, the terminal shows "
        + "which store is locked. (default: 5s)",
      valueName: "duration"),
    transform: { try DurationArgument($0, in: .zero...(.seconds(3600))) })
  var busyTimeout = DurationArgument(.seconds(5))

  var timeoutSeconds: Double { busyTimeout.duration.inSeconds }
}
