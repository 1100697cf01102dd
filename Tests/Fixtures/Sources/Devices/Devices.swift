// swift-format-ignore-file
#if canImport(SwiftUI)
  import SwiftUI
#endif
import Foundation
import Instar

/// A device of the house.
@available(iOS 17.0, macOS 14.0, watchOS 10.0, tvOS 17.0, *)
@Model
final class Device {
  // MARK: Identity

  /// Serial number.
  @Attribute(.unique) var serial: String  // as printed on the back
  @Attribute(.externalStorage) var photo: Data?
  @Attribute(.spotlight) var label: String = "Device"
  @Attribute(.ephemeral) var isReachable: Bool = false
  @Attribute(.allowsCloudEncryption) var secret: String? = nil

  // MARK: State

  @Attribute(hashModifier: "v2") var settings: Settings = Settings()
  var readings: [Reading] = []

  #if DEBUG
    func dump() -> String { "\(serial): \(readings.count)" }
  #else
    func dump() -> String { serial }
  #endif

  #if os(iOS)
    var color: UIColor { .red }
  #endif

  init(serial: String) {
    self.serial = serial
  }

  struct Settings: Codable, Hashable, Sendable {
    var interval: TimeInterval = 60
    var mode: Mode = .normal
    enum Mode: String, Codable, Sendable { case normal, eco }
  }
}

@available(iOS 17.0, macOS 14.0, watchOS 10.0, tvOS 17.0, *)
extension Device {
  var latest: Reading? { readings.max { $0.time < $1.time } }
  static func named(_ label: String) -> Predicate<Device> { #Predicate { $0.label == label } }
}

@available(iOS 17.0, macOS 14.0, watchOS 10.0, tvOS 17.0, *)
@Model
final class Reading {
  #Index<Reading>([\.time])
  var time: Date
  var celsius: Float
  var device: Device?
  init(time: Date, celsius: Float) {
    self.time = time
    self.celsius = celsius
  }
}

@available(iOS 17.0, macOS 14.0, watchOS 10.0, tvOS 17.0, *)
enum DevicesSchemaV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Device.self, Reading.self] }
}

@available(iOS 17.0, macOS 14.0, watchOS 10.0, tvOS 17.0, *)
enum DevicesPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [DevicesSchemaV1.self] }
  static var stages: [MigrationStage] { [] }
}
