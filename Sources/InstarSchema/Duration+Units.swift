extension Duration {
  /// The duration as a number of seconds.
  package var inSeconds: Double { self / .seconds(1) }

  /// The duration in microseconds, rounded towards zero.
  package var inMicroseconds: Int64 {
    components.seconds * 1_000_000 + components.attoseconds / 1_000_000_000_000
  }
}
