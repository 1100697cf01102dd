internal import Foundation

extension StoreFile {
  /// What of the write-ahead log is not in the store's file yet: the bytes of the frames that the next checkpoint has to
  /// copy. 0 where the log is empty, was checkpointed, or is left from an earlier round; `nil` where there is no log.
  ///
  /// For people to read. The log is not checked as SQLite checks it, so that this costs little.
  ///
  /// - Important: Opens and closes descriptors of the files, as looking at them does.
  public func pendingLogBytes() -> Int64? {
    guard log != nil else { return nil }
    guard let frames = LogFrames(path: path) else { return 0 }
    return Int64(frames.pendingCount(pageSizeBytes: pageSizeBytes)) * Int64(frames.frameBytes)
  }
}

/// The frames of a write-ahead log (SQLite file format, section 4).
private struct LogFrames {
  private let store: String
  private let descriptor: LogDescriptor
  /// The 8 bytes that every frame of the log's present round carries too.
  private let salt: [UInt8]
  private let pageBytes: Int

  private static let headerBytes = 32
  private static let frameHeaderBytes = 24
  /// How much of a log is compared with the store at most; a longer one counts as pending.
  private static let comparedBytesLimit = 64 << 20

  var frameBytes: Int { pageBytes + Self.frameHeaderBytes }

  /// `nil` where there is no log, or SQLite would ignore it.
  init?(path: String) {
    guard let descriptor = LogDescriptor(path: path + "-wal"),
      case let header = descriptor.bytes(at: 0, count: Self.headerBytes),
      header.count == Self.headerBytes,
      [0x377F_0682, 0x377F_0683].contains(Self.integer(header, at: 0)),
      Self.integer(header, at: 4) == 3_007_000
    else { return nil }
    let size = Self.integer(header, at: 8)
    guard size >= 512, size <= 65536, size & (size - 1) == 0 else { return nil }
    store = path
    self.descriptor = descriptor
    salt = Array(header[16..<24])
    pageBytes = Int(size)
  }

  /// How many frames a checkpoint has to copy.
  func pendingCount(pageSizeBytes: Int) -> Int {
    // The store's file has another page size only where the log is not its own.
    guard pageBytes == pageSizeBytes else { return 0 }
    if let (last, copied) = countsOfIndex() { return max(0, last - copied) }
    let count = committedCount()
    return isInStore(count) ? 0 : count
  }

  /// What the log's index beside it says: the last valid frame, and how many of them a checkpoint has copied. `nil` where
  /// there is no index, or it is of another round (wal.c, `WalIndexHdr` and `WalCkptInfo`).
  private func countsOfIndex() -> (last: Int, copied: Int)? {
    guard let index = LogDescriptor(path: store + "-shm"),
      case let bytes = index.bytes(at: 0, count: 100), bytes.count == 100,
      bytes[0..<48] == bytes[48..<96], bytes[12] != 0, Array(bytes[32..<40]) == salt
    else { return nil }
    func native(_ offset: Int) -> Int {
      Int(bytes[offset..<(offset + 4)].reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) })
    }
    return (native(16), native(96))
  }

  /// The frames up to the last commit of the present round. Those of earlier rounds stand behind it.
  private func committedCount() -> Int {
    var (first, end) = (0, Int(max(0, descriptor.size - Int64(Self.headerBytes))) / frameBytes)
    while first < end {
      let middle = first + (end - first) / 2
      if isOfPresentRound(middle) { first = middle + 1 } else { end = middle }
    }
    var count = first
    while count > 0, let header = frameHeader(count - 1), Self.integer(header, at: 4) == 0 {
      count -= 1
    }
    return count
  }

  private func isOfPresentRound(_ frame: Int) -> Bool {
    frameHeader(frame).map { Array($0[8..<16]) == salt } ?? false
  }

  private func frameHeader(_ frame: Int) -> [UInt8]? {
    let bytes = descriptor.bytes(at: place(of: frame), count: Self.frameHeaderBytes)
    return bytes.count == Self.frameHeaderBytes ? bytes : nil
  }

  private func place(of frame: Int) -> Int64 {
    Int64(Self.headerBytes) + Int64(frame) * Int64(frameBytes)
  }

  /// Whether the store has every page as the last of these frames has it: it was checkpointed, and its index is gone.
  private func isInStore(_ count: Int) -> Bool {
    guard count * pageBytes <= Self.comparedBytesLimit, let store = LogDescriptor(path: store)
    else { return false }
    var pages: [UInt32: Int] = [:]
    for frame in 0..<count {
      guard let header = frameHeader(frame) else { return false }
      pages[Self.integer(header, at: 0)] = frame
    }
    return pages.allSatisfy { page, frame in
      let written = descriptor.bytes(
        at: place(of: frame) + Int64(Self.frameHeaderBytes), count: pageBytes)
      let offset = (Int64(page) - 1) * Int64(pageBytes)
      return offset >= 0 && store.bytes(at: offset, count: pageBytes) == written
    }
  }

  private static func integer(_ bytes: [UInt8], at offset: Int) -> UInt32 {
    bytes[offset..<(offset + 4)].reduce(0) { $0 << 8 | UInt32($1) }
  }
}

/// A regular file that is open for reading.
private final class LogDescriptor {
  private let descriptor: Int32
  let size: Int64

  /// `nil` where there is no such file, or it is none that can be read.
  init?(path: String) {
    descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      close(descriptor)
      return nil
    }
    size = Int64(status.st_size)
  }

  deinit { close(descriptor) }

  /// Fewer where the file ends before.
  func bytes(at offset: Int64, count: Int) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      while filled < count {
        let read = pread(
          descriptor, buffer.baseAddress.map { $0 + filled }, count - filled,
          off_t(offset) + off_t(filled))
        if read < 0, errno == EINTR { continue }
        guard read > 0 else { break }
        filled += read
      }
    }
  }
}
