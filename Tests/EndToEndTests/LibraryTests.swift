import Foundation
import InstarLinux
import InstarTestSupport
import Testing

@Suite("libInstar.so")
struct LibraryTests {
  @Test("libInstar.so needs no library that an app on a small system lacks, such as libsystemd")
  func needed() async throws {
    let library = CommandLineTool.productsFolder.appendingPathComponent("libInstar.so").path
    let answer = try await Program.run("readelf", ["--dynamic", "--wide", library])
    #expect(answer.status == 0 && answer.messages.contains("(NEEDED)"))
    #expect(!answer.messages.contains("libsystemd"))
  }
}
