extension String {
  /// The hash FNV-1a of the text's bytes in UTF-8, with 64 bits. Unlike that of `Hasher`, it is the same in every
  /// process, on every host and in every release.
  ///
  /// It never changes: hosts of different releases compute the same waves from it, a rollout continues in the same
  /// order of stores after a restart, and files in the state folder are found by it.
  package var stableHash: UInt64 {
    utf8.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
  }
}
