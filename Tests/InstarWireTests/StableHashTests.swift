import InstarWire
import Testing

@Suite("The hash that never changes")
struct StableHashTests {
  /// The first three are in the reference implementation of FNV.
  @Test(
    "a text's hash is the one that earlier releases computed",
    arguments: [
      ("", 0xcbf2_9ce4_8422_2325), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8),
      ("/srv/ä.store", 0x50fb_3700_0443_9388),
    ] as [(String, UInt64)])
  func knownValues(text: String, hash: UInt64) {
    #expect(text.stableHash == hash)
  }
}
