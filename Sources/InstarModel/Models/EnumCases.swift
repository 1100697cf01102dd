/// Reads the cases of an enum from its metadata.
enum EnumCases {
  /// Returns the names of an enum's cases in source order; `nil` for other types, and if a case has associated values.
  ///
  /// The compiler emits this metadata for reflection: a pointer to the nominal type descriptor, there a relative
  /// pointer to the field descriptor, there one record for each case (swift/docs/ABI/TypeMetadata.rst and
  /// swift/include/swift/RemoteInspection/Records.h).
  static func namesWithoutValues(of type: Any.Type) -> [String]? {
    let enumKind: UInt = 0x201
    func target(of reference: UnsafeRawPointer) -> UnsafeRawPointer? {
      let distance = reference.load(as: Int32.self)
      return distance == 0 ? nil : reference + Int(distance)
    }
    let metadata = unsafeBitCast(type, to: UnsafeRawPointer.self)
    guard metadata.load(as: UInt.self) == enumKind,
      let descriptor = metadata.load(
        fromByteOffset: MemoryLayout<UInt>.size, as: UnsafeRawPointer?.self),
      let fields = target(of: descriptor + 16)
    else { return nil }
    let recordSize = Int(fields.load(fromByteOffset: 10, as: UInt16.self))
    let count = Int(fields.load(fromByteOffset: 12, as: UInt32.self))
    var names: [String] = []
    for number in 0..<count {
      let record = fields + 16 + number * recordSize
      let hasValues = record.load(fromByteOffset: 4, as: Int32.self) != 0
      guard !hasValues, let name = target(of: record + 8) else { return nil }
      names.append(String(cString: name.assumingMemoryBound(to: CChar.self)))
    }
    return names
  }

  /// Returns all cases of an enum without associated values, in source order; `nil` for other types.
  ///
  /// Such a value is the number of its case in memory (swift/docs/ABI/TypeLayout.rst, "Multi-Case Enums without
  /// payloads"). An enum with a single case has size 0.
  static func all<Value>(of type: Value.Type) -> [Value]? {
    guard let names = namesWithoutValues(of: type), !names.isEmpty else { return nil }
    let size = MemoryLayout<Value>.size
    guard size <= MemoryLayout<UInt32>.size, size > 0 || names.count == 1 else { return nil }
    return names.indices.map { number in
      withUnsafeTemporaryAllocation(of: Value.self, capacity: 1) { memory in
        var number = UInt32(number).littleEndian
        let bytes = UnsafeMutableRawBufferPointer(memory)
        withUnsafeBytes(of: &number) {
          bytes.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[..<size]))
        }
        return memory[0]
      }
    }
  }
}
