import Glibc
import InstarSchema

/// A shared library for this machine, read piece by piece.
struct ELFFile {
  /// Enough for any linker; a file that claims more is not read through.
  static let segmentLimit = 1024
  static let noteLimitBytes: UInt64 = 1 << 20

  private let path: String
  private let descriptor: Int32
  private let sizeBytes: UInt64
  private let segments: ELFContents

  #if arch(x86_64)
    private static let machine: UInt16 = 62
    private static let machineName = "x86_64"
  #elseif arch(arm64)
    private static let machine: UInt16 = 183
    private static let machineName = "aarch64"
  #endif
  private static let segmentBytes = 56

  /// Reads and checks the header. The descriptor stays the caller's.
  init(path: String, descriptor: Int32) throws(InstarError) {
    self.path = path
    self.descriptor = descriptor
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.isRegular else {
      throw Self.failure(path, "not a regular file")
    }
    sizeBytes = UInt64(max(0, status.st_size))
    guard sizeBytes >= 64 else { throw Self.failure(path, "not a 64-bit ELF file") }
    let header = try Self.read(path, descriptor, sizeBytes, offset: 0, count: 64)
    // 0x7F "ELF", 64-bit, little-endian.
    guard header.bytes.starts(with: [0x7F, 0x45, 0x4C, 0x46, 2, 1]) else {
      throw Self.failure(path, "not a 64-bit ELF file")
    }
    guard header.half(at: 16) == 3 else { throw Self.failure(path, "not a shared library") }
    guard header.half(at: 18) == Self.machine else {
      throw Self.failure(path, "not built for this machine (\(Self.machineName))")
    }
    guard let table = header.long(at: 32), header.half(at: 54) == UInt16(Self.segmentBytes),
      let count = header.half(at: 56), count <= Self.segmentLimit
    else { throw Self.failure(path, "the ELF header is damaged") }
    segments = try Self.read(
      path, descriptor, sizeBytes, offset: table, count: UInt64(count) * UInt64(Self.segmentBytes))
    try requireWhole(header)
  }

  /// Refuses a file that was copied in part: the loader would map its missing pages, and the first access kills the
  /// worker, as if the plugin's code had crashed.
  private func requireWhole(_ header: ELFContents) throws(InstarError) {
    let starts = stride(from: 0, to: segments.bytes.count, by: Self.segmentBytes)
    var pieces = starts.map { (segments.long(at: $0 + 8), segments.long(at: $0 + 32)) }
    // Linkers write the table of sections last. A file without one has the offset 0.
    let tableBytes = UInt64(header.half(at: 58) ?? 0) * UInt64(header.half(at: 60) ?? 0)
    pieces.append((header.long(at: 40), tableBytes))
    for case (let offset?, let count?) in pieces {
      let (end, isTooLarge) = offset.addingReportingOverflow(count)
      guard !isTooLarge, end <= sizeBytes else { throw failure("the file is truncated") }
    }
  }

  /// The descriptor of the first note of that name and type, `nil` where there is none.
  func note(name: String, type: UInt32) throws(InstarError) -> ELFContents? {
    let wanted = Array(name.utf8) + [0]
    for start in stride(from: 0, to: segments.bytes.count, by: Self.segmentBytes) {
      let isNote = segments.word(at: start) == 4
      guard isNote, let offset = segments.long(at: start + 8),
        let count = segments.long(at: start + 32), let alignment = segments.long(at: start + 48)
      else { continue }
      guard count <= Self.noteLimitBytes else { throw failure("an ELF note is longer than 1 MiB") }
      let piece = try Self.read(path, descriptor, sizeBytes, offset: offset, count: count)
      if let found = piece.note(name: wanted, type: type, alignment: alignment == 8 ? 8 : 4) {
        return found
      }
    }
    return nil
  }

  func failure(_ cause: String, next: String? = nil) -> InstarError {
    Self.failure(path, cause, next: next)
  }

  static func failure(_ path: String, _ cause: String, next: String? = nil) -> InstarError {
    InstarError(
      .notAPlugin, "cannot use '\(path)' as a plugin", cause: cause,
      next: next ?? "build the plugin with 'instarctl plugin build'")
  }

  private static func read(
    _ path: String, _ descriptor: Int32, _ sizeBytes: UInt64, offset: UInt64, count: UInt64
  ) throws(InstarError) -> ELFContents {
    let (end, isTooLarge) = offset.addingReportingOverflow(count)
    guard !isTooLarge, end <= sizeBytes else { throw failure(path, "the file is truncated") }
    var bytes = [UInt8](repeating: 0, count: Int(count))
    var have = 0
    while have < bytes.count {
      let got = bytes.withUnsafeMutableBytes {
        pread(
          descriptor, $0.baseAddress.map { $0 + have }, $0.count - have, off_t(offset) + off_t(have)
        )
      }
      let reason = errno
      if got < 0, reason == EINTR { continue }
      if got < 0 {
        throw failure(path, String(cString: strerror(reason)), next: "run: journalctl -k -n 50")
      }
      // Cut short while it was being read.
      guard got > 0 else { throw failure(path, "the file is truncated") }
      have += got
    }
    return ELFContents(bytes: bytes)
  }
}

/// Some bytes of the file, read as little-endian numbers; `nil` beyond their end.
struct ELFContents {
  var bytes: [UInt8]

  func half(at offset: Int) -> UInt16? { number(at: offset, byteCount: 2).map { UInt16($0) } }
  func word(at offset: Int) -> UInt32? { number(at: offset, byteCount: 4).map { UInt32($0) } }
  func long(at offset: Int) -> UInt64? { number(at: offset, byteCount: 8) }

  private func number(at offset: Int, byteCount: Int) -> UInt64? {
    guard offset >= 0, offset <= bytes.count - byteCount else { return nil }
    return bytes[offset..<offset + byteCount].reversed().reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// Goes through a segment of notes: each is the lengths of name and descriptor and a type, then both, each padded.
  func note(name: [UInt8], type: UInt32, alignment: Int) -> ELFContents? {
    var position = 0
    while let nameBytes = word(at: position), let descriptorBytes = word(at: position + 4),
      let found = word(at: position + 8)
    {
      let nameStart = position + 12
      // 32-bit lengths cannot overflow a 64-bit sum.
      let nameEnd = nameStart + Int(nameBytes)
      let descriptorStart = padded(nameEnd, to: alignment)
      let descriptorEnd = descriptorStart + Int(descriptorBytes)
      guard descriptorEnd <= bytes.count else { return nil }
      if found == type, bytes[nameStart..<nameEnd].elementsEqual(name) {
        return ELFContents(bytes: Array(bytes[descriptorStart..<descriptorEnd]))
      }
      position = padded(descriptorEnd, to: alignment)
    }
    return nil
  }

  private func padded(_ offset: Int, to alignment: Int) -> Int {
    (offset + alignment - 1) / alignment * alignment
  }
}
