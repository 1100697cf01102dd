import Foundation
import InstarLinux
import InstarSchema
import InstarTestSupport
import Testing

@Suite("PluginNote")
struct PluginNoteTests {
  let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder(mode: 0o700)
  }

  /// A real shared library with that note among others.
  func plugin(
    abi: UInt32 = PluginNote.supportedABI, text: String = "6.3\\nNotesMigrationPlan\\nOtherPlan"
  ) throws -> String {
    let source = try folder.write(
      """
      #define NOTE __attribute__((section(".note.instar"), used, aligned(4))) static const
      NOTE struct { unsigned n, d, t; char name[8]; unsigned word; }
        other = {4, 4, 1, "GNU", 7}, sameNameOtherType = {7, 4, 2, "Instar", 8};
      NOTE struct { unsigned n, d, t; char name[8]; unsigned abi; char text[(sizeof "\(text)" + 3) / 4 * 4]; }
        note = {7, 4 + sizeof note.text, 1, "Instar", \(abi), "\(text)"};
      """, to: "plugin.c")
    let output = folder.path("plugin.so")
    try compileC([source], to: output, ["-shared", "-fPIC", "-nostdlib"])
    return output
  }

  @Test("the note of a shared library is read without loading it")
  func reads() throws {
    let path = try plugin()
    let note = try PluginNote.read(path: path)
    #expect(note.abi == PluginNote.supportedABI)
    #expect(note.swiftVersion == "6.3")
    #expect(note.planNames == ["NotesMigrationPlan", "OtherPlan"])
    try note.requireSupportedABI(path: path)
  }

  @Test("another ABI is told with both numbers")
  func otherABI() throws {
    let path = try plugin(abi: 99)
    let note = try PluginNote.read(path: path)
    #expect(note.abi == 99)
    let error = try instarError { try note.requireSupportedABI(path: path) }
    #expect(error.code == .wrongABI)
    #expect(
      error.cause
        == "built for plugin ABI 99; this version of Instar loads ABI \(PluginNote.supportedABI)"
    )
  }

  @Test(
    "a file that is not a plugin is refused with the reason",
    arguments: [
      ("empty", "", "not a 64-bit ELF file"),
      ("text", String(repeating: "text\n", count: 100), "not a 64-bit ELF file"),
      ("short", "\u{7F}ELF", "not a 64-bit ELF file"),
    ])
  func noPlugin(name: String, content: String, cause: String) throws {
    let path = try folder.write(content, to: name)
    let error = try instarError { _ = try PluginNote.read(path: path) }
    #expect(error.code == .notAPlugin)
    #expect(error.cause == cause)
  }

  @Test("a folder, a FIFO, a missing file and an executable are refused as plugins without waiting")
  func otherFiles() throws {
    #expect(mkfifo(folder.path("fifo"), 0o600) == 0)
    for path in [folder.path, folder.path("fifo"), folder.path("none"), "/bin/bash"] {
      #expect(try instarError { _ = try PluginNote.read(path: path) }.code == .notAPlugin)
    }
  }

  @Test("a shared library without a note is told what it lacks")
  func noNote() throws {
    let source = try folder.write("int nothing;", to: "empty.c")
    try compileC([source], to: folder.path("empty.so"), ["-shared", "-nostdlib"])
    let error = try instarError { _ = try PluginNote.read(path: folder.path("empty.so")) }
    #expect(error.code == .notAPlugin)
    #expect(error.cause == "the file has no Instar note")
  }

  @Test("a plugin that was copied in part is truncated, also where its note is whole")
  func truncated() throws {
    let path = try plugin()
    let good = try Data(contentsOf: URL(fileURLWithPath: path))
    for count in [good.count - 1, good.count * 3 / 4, good.count / 2, 64] {
      #expect(truncate(path, off_t(count)) == 0)
      let error = try instarError { _ = try PluginNote.read(path: path) }
      #expect(error.code == .notAPlugin && error.cause == "the file is truncated")
    }
  }

  @Test(
    "a file cut short anywhere, or with any byte of its headers and notes changed, is a note or an error, never a trap"
  )
  func hostile() throws {
    let path = try plugin()
    let good = try Data(contentsOf: URL(fileURLWithPath: path))
    func outcome() throws {
      do throws(InstarError) {
        _ = try PluginNote.read(path: path)
      } catch {
        #expect(error.code == .notAPlugin)
      }
    }
    for count in stride(from: good.count - 1, through: 0, by: -61) {
      #expect(truncate(path, off_t(count)) == 0)
      try outcome()
    }
    try good.write(to: URL(fileURLWithPath: path))
    let name = try #require(good.range(of: Data("Instar\0".utf8)))
    let positions = Array(0..<64 + 56 * 12) + Array(name.lowerBound - 40..<name.upperBound + 40)
    let file = open(path, O_WRONLY)
    defer { close(file) }
    for position in positions {
      for change: UInt8 in [0x01, 0xFF] {
        var byte = good[position] ^ change
        pwrite(file, &byte, 1, off_t(position))
        try outcome()
      }
      var byte = good[position]
      pwrite(file, &byte, 1, off_t(position))
    }
    #expect(try PluginNote.read(path: path).abi == PluginNote.supportedABI)
  }
}
