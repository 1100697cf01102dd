/// The ELF note of a plugin, which other programs read without running the plugin's code.
///
/// Layout, as little-endian 32-bit words (System V ABI, "Note Section"): size of the name, size of
/// the description, type 1, the name `Instar` with its NUL padded to 8 bytes, the description. The
/// description is the SDK's ABI number, then UTF-8 text padded with NULs to a multiple of 4:
/// the Swift version the SDK was compiled by and the name of each plan, one per line.
struct PluginNote {
  /// Loaders, `readelf -n` and the keeper find the note by this name. The prefix `.note` makes the linker put it into a
  /// `PT_NOTE` segment.
  static let sectionName = ".note.instar"

  /// The number that a plugin and `libInstar.so` must have in common. Raise it by one when plugins of an earlier SDK no
  /// longer run: after a change of the entry point, of this note, or of any macro expansion.
  static let abi: UInt32 = 5

  /// The Swift release that compiled this SDK. Swift has no stable ABI on Linux, so plugins need the same release.
  static let sdkCompilerVersion: String = {
    #if compiler(>=6.6)
      "6.6"
    #elseif compiler(>=6.5)
      "6.5"
    #elseif compiler(>=6.4)
      "6.4"
    #elseif compiler(>=6.3)
      "6.3"
    #else
      "6.2"
    #endif
  }()

  let compilerVersion: String
  let planNames: [String]

  /// The whole note.
  var words: [UInt32] {
    let name = Array("Instar\0".utf8)
    let text = Array(([compilerVersion] + planNames).joined(separator: "\n").utf8)
    let description = [Self.abi] + Self.words(of: text)
    return [UInt32(name.count), UInt32(description.count * 4), 1] + Self.words(of: name)
      + description
  }

  /// Returns `bytes` as little-endian words; zeros fill the last one.
  private static func words(of bytes: [UInt8]) -> [UInt32] {
    stride(from: 0, to: bytes.count, by: 4).map { start in
      bytes[start..<min(start + 4, bytes.count)].reversed().reduce(0) { $0 << 8 | UInt32($1) }
    }
  }
}
