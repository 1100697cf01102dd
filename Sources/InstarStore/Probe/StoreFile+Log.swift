internal import InstarSchema
internal import Foundation

extension StoreFile {
  /// The bytes of the committed frames in the `-wal` file that are not in the database file yet.
  ///
  /// 0 where the log is empty, was checkpointed, or belongs to an earlier round; `nil` where there is no log.
  ///
  /// - Important: Opens and closes descriptors of the files, as `probe` does.
  public func pendingLogBytes() -> Int64? {
    guard log != nil else { return nil }
    guard let frames = LogFrames(path: path) else { return 0 }
    let count = frames.pendingCount(pageSizeBytes: pageSizeBytes, isInUse: logIsInUse)
    return Int64(count) * Int64(frames.frameBytes)
  }
}

/// The frames of a write-ahead log (SQLite file format, section 4).
private struct LogFrames {
  private let store: String
  private let descriptor: ReadableFile
  /// The header, whose bytes 16 to 24 are the salt that every frame of the log's current round has too.
  private let header: [UInt8]
  private let pageBytes: Int

  private static let headerBytes = 32
  private static let frameHeaderBytes = 24
  /// A longer log is not checked by checksums, and not compared with the store.
  private static let checkedBytesLimit = 64 << 20

  var frameBytes: Int { pageBytes + Self.frameHeaderBytes }
  private var salt: ArraySlice<UInt8> { header[16..<24] }
  private var frameCount: Int {
    Int(max(0, descriptor.size - Int64(Self.headerBytes))) / frameBytes
  }

  /// `nil` where there is no log, or SQLite would ignore it.
  init?(path: String) {
    guard let descriptor = ReadableFile(path: SideFile.log.path(of: path)),
      case let header = descriptor.bytes(at: 0, count: Self.headerBytes),
      header.count == Self.headerBytes,
      [0x377F_0682, 0x377F_0683].contains(header.integer(at: 0)),
      header.integer(at: 4) == 3_007_000
    else { return nil }
    let size = header.integer(at: 8)
    guard size >= 512, size <= 65536, size & (size - 1) == 0 else { return nil }
    store = path
    self.descriptor = descriptor
    self.header = header
    pageBytes = Int(size)
  }

  /// Returns how many frames a checkpoint has to copy.
  ///
  /// - Parameter isInUse: Whether a process has the log open and keeps its index up to date. An index that a crash left
  ///   behind may be older than the log.
  func pendingCount(pageSizeBytes: Int, isInUse: Bool) -> Int {
    // The store's file has another page size only where the log is not its own.
    guard pageBytes == pageSizeBytes else { return 0 }
    if isInUse, let (last, copied) = countsOfIndex() { return max(0, last - copied) }
    let isShort = frameCount * frameBytes <= Self.checkedBytesLimit
    let count = isShort ? checkedCount() : countBySalt()
    return isShort && isInStore(count) ? 0 : count
  }

  /// The last valid frame and the number of frames that a checkpoint has copied, from the log's index; `nil` where
  /// there is no index, or it is of another round (wal.c, `WalIndexHdr` and `WalCkptInfo`).
  private func countsOfIndex() -> (last: Int, copied: Int)? {
    guard let index = ReadableFile(path: SideFile.index.path(of: store)),
      case let bytes = index.bytes(at: 0, count: 100), bytes.count == 100,
      bytes[0..<48] == bytes[48..<96], bytes[12] != 0, bytes[32..<40].elementsEqual(salt)
    else { return nil }
    func native(_ offset: Int) -> Int {
      Int(bytes[offset..<(offset + 4)].reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) })
    }
    return (native(16), native(96))
  }

  /// Returns the number of frames up to the last commit, as SQLite recovers them: each has the salt of the current
  /// round, and a checksum over everything before it.
  private func checkedCount() -> Int {
    var sum = Checksum(isBigEndian: header[3] & 1 == 1)
    sum.add(header[..<24])
    guard sum.matches(header[24...]) else { return 0 }
    var committed = 0
    for frame in 0..<frameCount {
      let bytes = descriptor.bytes(at: offset(of: frame), count: frameBytes)
      guard bytes.count == frameBytes, bytes[8..<16].elementsEqual(salt) else { break }
      sum.add(bytes[..<8])
      sum.add(bytes[Self.frameHeaderBytes...])
      guard sum.matches(bytes[16..<24]) else { break }
      if bytes.integer(at: 4) != 0 { committed = frame + 1 }
    }
    return committed
  }

  /// Returns the number of frames up to the last commit of the current round. Frames of earlier rounds follow them.
  private func countBySalt() -> Int {
    var (first, end) = (0, frameCount)
    while first < end {
      let middle = first + (end - first) / 2
      let isCurrent = frameHeader(middle).map { $0[8..<16].elementsEqual(salt) } ?? false
      if isCurrent { first = middle + 1 } else { end = middle }
    }
    var count = first
    while count > 0, let header = frameHeader(count - 1), header.integer(at: 4) == 0 {
      count -= 1
    }
    return count
  }

  private func frameHeader(_ frame: Int) -> [UInt8]? {
    let bytes = descriptor.bytes(at: offset(of: frame), count: Self.frameHeaderBytes)
    return bytes.count == Self.frameHeaderBytes ? bytes : nil
  }

  private func offset(of frame: Int) -> Int64 {
    Int64(Self.headerBytes) + Int64(frame) * Int64(frameBytes)
  }

  /// Whether the store has every page as the last of these frames has it: then they were checkpointed.
  private func isInStore(_ count: Int) -> Bool {
    guard let store = ReadableFile(path: store) else { return false }
    var pages: [UInt32: Int] = [:]
    for frame in 0..<count {
      guard let header = frameHeader(frame) else { return false }
      pages[header.integer(at: 0)] = frame
    }
    return pages.allSatisfy { page, frame in
      let written = descriptor.bytes(
        at: offset(of: frame) + Int64(Self.frameHeaderBytes), count: pageBytes)
      let offset = (Int64(page) - 1) * Int64(pageBytes)
      return offset >= 0 && store.bytes(at: offset, count: pageBytes) == written
    }
  }

}

/// The checksum of a write-ahead log (SQLite file format, section 4.2).
private struct Checksum {
  private let isBigEndian: Bool
  private var sums: (UInt32, UInt32) = (0, 0)

  init(isBigEndian: Bool) { self.isBigEndian = isBigEndian }

  /// - Parameter bytes: A multiple of 8.
  mutating func add(_ bytes: ArraySlice<UInt8>) {
    let isBigEndian = isBigEndian
    sums = bytes.withUnsafeBytes { buffer in
      var (one, two) = sums
      for offset in stride(from: 0, to: buffer.count - 7, by: 8) {
        let first = buffer.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
        let second = buffer.loadUnaligned(fromByteOffset: offset + 4, as: UInt32.self)
        one &+= (isBigEndian ? UInt32(bigEndian: first) : UInt32(littleEndian: first)) &+ two
        two &+= (isBigEndian ? UInt32(bigEndian: second) : UInt32(littleEndian: second)) &+ one
      }
      return (one, two)
    }
  }

  /// Whether the 8 bytes are this checksum. It is stored in big-endian form in any case.
  func matches(_ bytes: ArraySlice<UInt8>) -> Bool {
    bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) } == UInt64(sums.0) << 32 | UInt64(sums.1)
  }
}
