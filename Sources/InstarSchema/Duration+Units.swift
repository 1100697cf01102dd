extension Duration {
  /// The duration as a number of seconds.
  package var inSeconds: Double { self / .seconds(1) }

  /// The duration in microseconds, rounded towards zero.
  package var inMicroseconds: Int64 {
    components.seconds * 1_000_000 + components.attoseconds / 1_000_000_000_000
  }
}

extension ContinuousClock.Instant {
  /// The seconds since this machine started, as CLOCK_BOOTTIME has them: the same in all processes of the machine.
  package var secondsSinceBoot: Double { (self - ContinuousClock().systemEpoch).inSeconds }

  /// The moment so many seconds after this machine started. A number that no clock has, as a broken client may send
  /// it, is some decades.
  package init(secondsSinceBoot seconds: Double) {
    self = ContinuousClock().systemEpoch + .seconds(max(-1e9, min(1e9, seconds)))
  }
}
