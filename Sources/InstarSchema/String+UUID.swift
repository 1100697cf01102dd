internal import Foundation

extension String {
  /// The 16 bytes of a UUID as text, in capitals; `nil` if there are more or fewer bytes.
  package init?(uuid bytes: [UInt8]) {
    guard bytes.count == 16 else { return nil }
    self = bytes.withUnsafeBytes { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)).uuidString }
  }
}
