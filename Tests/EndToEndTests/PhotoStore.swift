import Foundation
import GRDB
import Instar
import InstarStore

/// The models of `Tests/Fixtures/Plugins/Photos.swift` at 1.0.0, to make stores with.
private enum PhotosSchemaV1: VersionedSchema {
  static var versionIdentifier: Schema.Version { Schema.Version(1, 0, 0) }
  static var models: [any PersistentModel.Type] { [Photo.self] }

  @Model
  final class Photo {
    var name: String
    @Attribute(.externalStorage) var image: Data?
    @Attribute(.externalStorage) var thumbnail: Data?

    init(name: String) { self.name = name }
  }
}

/// A store with large values in files beside it.
enum PhotoStore {
  static let large = Data((0..<300_000).map { UInt8(truncatingIfNeeded: $0 / 7) })

  /// Makes a store of four photos, which have five files.
  ///
  /// - Returns: The images by the names of the photos.
  @discardableResult
  static func make(at path: String) throws -> [String: Data] {
    let container = try ModelContainer(
      for: Schema(versionedSchema: PhotosSchemaV1.self),
      configurations: ModelConfiguration(url: URL(filePath: path)))
    let context = ModelContext(container)
    var images: [String: Data] = [:]
    for name in ["kept", "doubled", "shortened", "empty"] {
      let photo = PhotosSchemaV1.Photo(name: name)
      if name != "empty" {
        images[name] = Data(name.utf8) + large
        photo.image = images[name]
        photo.thumbnail = name == "kept" ? Data([1, 2, 3]) : large
      }
      context.insert(photo)
    }
    try context.save()
    try container.close()
    return images
  }

  /// The images of a store, or of a backup, as its rows and its files have them.
  static func images(of path: String, column: String = "ZIMAGE") throws -> [String: Data] {
    let values = ExternalValues(folder: ExternalValues.folder(ofStore: path))
    return try StoreReader.withReadOnlyStore(path) { db in
      var found: [String: Data] = [:]
      for row in try Row.fetchAll(db, sql: "SELECT ZNAME, \(column) FROM ZPHOTO") {
        let columns = Array(row.databaseValues)
        guard let stored = Data.fromDatabaseValue(columns[1]) else { continue }
        found[String.fromDatabaseValue(columns[0]) ?? ""] = try values.read(stored)
      }
      return found
    }
  }
}
