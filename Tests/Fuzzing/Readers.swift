// Compiled by packaging/fuzz into one module with the sources of InstarStore, for libFuzzer.

internal import Foundation
internal import InstarSchema

/// Which reader gets the bytes: the value of INSTAR_FUZZ.
private enum Reader: String {
  /// The property list of Z_METADATA.
  case plist
  /// The model of Z_MODELCACHE, packed.
  case model
  /// The unpacked model: changes of packed bytes rarely unpack to anything new.
  case archive
  /// A whole store.
  case probe
  /// A whole store, with and without SQLite.
  case pages

  static let chosen = ProcessInfo.processInfo.environment["INSTAR_FUZZ"].flatMap(Reader.init)
}

/// The path at which a whole store is written and probed.
private let storePath = NSTemporaryDirectory() + "/instar-fuzz-\(getpid()).store"

/// Called by libFuzzer with each input. A reader may refuse the input, but must not trap, hang or fill the memory.
@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> Int32 {
  let bytes = UnsafeBufferPointer(start: start, count: count)
  switch Reader.chosen {
  case .plist:
    if let plist = PropertyListValue.dictionary(Data(bytes)) {
      let metadata = CoreDataMetadata(uuid: "", plist: plist)
      _ = (metadata.version, metadata.entityHashes, metadata.fingerprint)
      _ = try? metadata.readSchema()
    }
  case .model:
    if let archive = try? DeflateReader.bytes(
      of: Array(bytes), limit: CoreDataModel.archiveLimitBytes)
    {
      _ = try? CoreDataModel(archive: archive)
    }
  case .archive:
    _ = try? CoreDataModel(archive: Array(bytes))
  case .probe, .pages:
    let descriptor = open(storePath, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    guard descriptor >= 0 else { fatalError("\(storePath) cannot be written") }
    write(descriptor, bytes.baseAddress, bytes.count)
    close(descriptor)
    guard Reader.chosen == .probe else {
      compareReaders()
      break
    }
    _ = try? StoreProbe.read(storePath, rows: .quick, busyTimeout: 0)
    _ = try? StoreReader.withReadOnlyStore(storePath, busyTimeout: 0) { try CoreDataModel.read($0) }
  case nil:
    fatalError("INSTAR_FUZZ names no reader: plist, model, archive, probe or pages")
  }
  return 0
}

/// Probes the store by SQLite, which makes its schema known, and then by its pages. Where these suffice, both must have
/// found the same.
private func compareReaders() {
  let asked = Result { () throws(InstarError) in
    try StoreProbe.read(storePath, busyTimeout: 0, readsPages: false)
  }
  guard let file = try? StoreFile.probe(storePath),
    let read = StoreProbe(pagesOf: file, versionSources: [])
  else { return }
  guard case .success(let asked) = asked else {
    fatalError("SQLite cannot read the store: \(asked)")
  }
  guard read.identity == asked.identity, read.entityList == asked.entityList,
    read.conventions == asked.conventions, read.uuid == asked.uuid,
    read.entityHashes == asked.entityHashes, read.metadataProblem == asked.metadataProblem,
    read.frameworkObjects == asked.frameworkObjects, read.replicator == asked.replicator
  else { fatalError("SQLite finds \(asked), the pages have \(read)") }
}
