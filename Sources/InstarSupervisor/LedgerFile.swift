import Foundation
import InstarLinux
import InstarSchema

/// One file of a ledger, opened to read.
///
/// It is read in pieces, and never mapped: an append that fails makes the file shorter again.
final class LedgerFile {
  let identity: FileIdentity
  private let path: String
  private let descriptor: Int32
  /// When the last line was added, in seconds since 1970.
  let writtenAt: Double
  private static let pieceBytes = 1 << 20

  /// - Throws: `stateFolderFailed`.
  init(_ path: String) throws(InstarError) {
    self.path = path
    descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    var status = stat()
    guard descriptor >= 0, fstat(descriptor, &status) == 0 else {
      throw .systemFailure("cannot read '\(path)'", errno, code: .stateFolderFailed)
    }
    identity = FileIdentity(status)
    writtenAt = Double(status.st_mtim.tv_sec) + Double(status.st_mtim.tv_nsec) / 1e9
  }

  deinit { close(descriptor) }

  /// Whether a line may have been added at a time or later. The clock may have been set back by up to an hour since.
  func isWritten(since start: Double) -> Bool { writtenAt + 3600 >= start }

  /// Where a line is.
  struct Place: Sendable {
    let file: FileIdentity
    let offset: off_t
    let bytes: Int
  }

  /// Returns the bytes at a place; fewer where the file has become shorter.
  func line(at place: Place) throws(InstarError) -> Data {
    var line = [UInt8](repeating: 0, count: place.bytes)
    var count: Int
    repeat {
      count = pread(descriptor, &line, line.count, place.offset)
    } while count < 0 && errno == EINTR
    guard count >= 0 else {
      throw .systemFailure("cannot read '\(path)'", errno, code: .stateFolderFailed)
    }
    return Data(line.prefix(count))
  }

  /// Passes on each line without its newline, empty ones left out.
  func forEachLine(_ body: (Data) -> Void) throws(InstarError) {
    try forEachPlacedLine { line, _ in body(line) }
  }

  /// Passes on each line as `forEachLine` does, with its place.
  func forEachPlacedLine(_ body: (Data, Place) -> Void) throws(InstarError) {
    func pass(_ line: Data, end: off_t) {
      guard !line.isEmpty else { return }
      body(line, Place(file: identity, offset: end - off_t(line.count), bytes: line.count))
    }
    var rest = Data()
    var offset: off_t = 0
    var piece = [UInt8](repeating: 0, count: Self.pieceBytes)
    while true {
      let count = pread(descriptor, &piece, piece.count, offset)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else {
        throw .systemFailure("cannot read '\(path)'", errno, code: .stateFolderFailed)
      }
      guard count > 0 else { break }
      var start = 0
      while let end = piece[start..<count].firstIndex(of: 0x0A) {
        rest.append(contentsOf: piece[start..<end])
        pass(rest, end: offset + off_t(end))
        rest = Data()
        start = end + 1
      }
      rest.append(contentsOf: piece[start..<count])
      offset += off_t(count)
    }
    pass(rest, end: offset)
  }
}
