import Foundation
import InstarSchema
import InstarTestSupport
import InstarWire
import Testing

@testable import InstarDaemon

@Suite("PluginRegistry")
struct PluginRegistryTests {
  private let manifest = PluginManifestFixture.notes

  private func version(_ number: Int64) -> WatchedVersion {
    WatchedVersion(
      FileVersion(
        identity: FileIdentity(device: 1, inode: 1), sizeBytes: 1, modifiedNanoseconds: number))
  }

  @Test("a listed plugin is described once, and used when that went well")
  func described() {
    var registry = PluginRegistry()
    #expect(!registry.isBusy)
    #expect(registry.list(["/p/a.so": version(1), "/p/b.so": version(1)]).isEmpty)
    #expect(registry.isBusy)
    #expect(registry.nextToDescribe() == ["/p/a.so", "/p/b.so"])
    #expect(registry.nextToDescribe().isEmpty)
    let error = InstarError(.wrongABI, "cannot use it", cause: "ABI 2, not 1")
    let (changes, isStale) = registry.describe(
      [("/p/a.so", .success(manifest)), ("/p/b.so", .failure(error))],
      versions: ["/p/a.so": version(1), "/p/b.so": version(1)])
    #expect(
      changes == [
        .accepted("/p/a.so", manifest, rival: nil), .refused("/p/b.so", error, wasUsable: false),
      ])
    #expect(!isStale)
    #expect(registry.usable == ["/p/a.so"])
    // The same listing again: nothing new, nothing said twice.
    #expect(registry.list(["/p/a.so": version(1), "/p/b.so": version(1)]).isEmpty)
    #expect(registry.nextToDescribe().isEmpty)
    #expect(!registry.isBusy)
  }

  @Test("the second of two plugins with the same plan names the first")
  func rivals() {
    var registry = PluginRegistry()
    let files = ["/p/a.so": version(1), "/p/b.so": version(1)]
    _ = registry.list(files)
    _ = registry.nextToDescribe()
    let (changes, _) = registry.describe(
      [("/p/a.so", .success(manifest)), ("/p/b.so", .success(manifest))], versions: files)
    #expect(
      changes == [
        .accepted("/p/a.so", manifest, rival: nil),
        .accepted("/p/b.so", manifest, rival: "/p/a.so"),
      ])
  }

  @Test("a plugin that changed is described again, and not used meanwhile")
  func changed() {
    var registry = PluginRegistry()
    _ = registry.list(["/p/a.so": version(1)])
    _ = registry.nextToDescribe()
    _ = registry.describe([("/p/a.so", .success(manifest))], versions: ["/p/a.so": version(1)])
    _ = registry.list(["/p/a.so": version(2)])
    #expect(registry.usable.isEmpty)
    #expect(registry.nextToDescribe() == ["/p/a.so"])
    let error = InstarError(.notAPlugin, "cannot use it", cause: "no ELF file")
    #expect(
      registry.describe([("/p/a.so", .failure(error))], versions: ["/p/a.so": version(2)]).changes
        == [.refused("/p/a.so", error, wasUsable: true)])
  }

  @Test("a plugin that is removed is gone at once")
  func removed() {
    var registry = PluginRegistry()
    _ = registry.list(["/p/a.so": version(1)])
    _ = registry.nextToDescribe()
    #expect(registry.list([:]) == [.removed("/p/a.so")])
    let (changes, _) = registry.describe([("/p/a.so", .success(manifest))], versions: [:])
    #expect(changes.isEmpty && registry.usable.isEmpty)
  }

  @Test("what was said of a plugin file that changed meanwhile is not believed")
  func stale() {
    var registry = PluginRegistry()
    _ = registry.list(["/p/a.so": version(1)])
    _ = registry.nextToDescribe()
    let error = InstarError(.notAPlugin, "cannot use it", cause: "cut off")
    let (changes, isStale) = registry.describe(
      [("/p/a.so", .failure(error))], versions: ["/p/a.so": version(2)])
    #expect(changes.isEmpty && isStale)
    _ = registry.list(["/p/a.so": version(2)])
    #expect(registry.nextToDescribe() == ["/p/a.so"])
  }

  @Test("the registry does not yet believe that a file that was just written cannot be used")
  func fresh() {
    var registry = PluginRegistry()
    let error = InstarError(.notAPlugin, "cannot use it", cause: "cut off")
    for isFresh in [true, false] {
      _ = registry.list(["/p/a.so": version(1)])
      #expect(registry.nextToDescribe() == ["/p/a.so"])
      let (changes, isStale) = registry.describe(
        [("/p/a.so", .failure(error))], versions: ["/p/a.so": version(1)],
        fresh: isFresh ? ["/p/a.so"] : [])
      #expect(changes == (isFresh ? [] : [.refused("/p/a.so", error, wasUsable: false)]))
      #expect(isStale == isFresh)
    }
  }

  @Test("a doubted plugin is described once more, used meanwhile, and not reported twice")
  func doubted() {
    var registry = PluginRegistry()
    let files = ["/p/a.so": version(1), "/p/b.so": version(1)]
    let error = InstarError(.keeperDied, "cannot use it", cause: "killed")
    let results: [(plugin: String, result: Result<PluginManifest, InstarError>)] = [
      ("/p/a.so", .success(manifest)), ("/p/b.so", .failure(error)),
    ]
    _ = registry.list(files)
    _ = registry.nextToDescribe()
    _ = registry.describe(results, versions: files)
    registry.describeAllAgain()
    #expect(registry.usable == ["/p/a.so"])
    #expect(registry.nextToDescribe() == ["/p/a.so", "/p/b.so"])
    #expect(registry.describe(results, versions: files).changes.isEmpty)
    registry.describeAllAgain()
    _ = registry.nextToDescribe()
    #expect(
      registry.describe([("/p/b.so", .success(manifest))], versions: files).changes == [
        .accepted("/p/b.so", manifest, rival: "/p/a.so")
      ])
    #expect(registry.usable == ["/p/a.so", "/p/b.so"])
  }

  @Test("a folder's plugins are its visible .so files; one that is not there has none")
  func folder() throws {
    let temporary = try TemporaryFolder()
    let folder = temporary.path
    for name in ["a.so", ".b.so", "c.so.tmp", "d.txt"] { try temporary.write("x", to: name) }
    try FileManager.default.createSymbolicLink(
      atPath: folder + "/e.so", withDestinationPath: folder + "/d.txt")
    try FileManager.default.createDirectory(
      atPath: folder + "/f.so", withIntermediateDirectories: false)
    #expect(try PluginFolder.list(folder).keys.sorted() == [folder + "/a.so", folder + "/e.so"])
    #expect(try PluginFolder.list(temporary.path("none")).isEmpty)
  }
}
