import Foundation
import Instar

// Two versions of models with large values; the code of the stage reads and replaces some.

enum PhotosSchemaV1: VersionedSchema {
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

enum PhotosSchemaV2: VersionedSchema {
  static var versionIdentifier: Schema.Version { Schema.Version(2, 0, 0) }
  static var models: [any PersistentModel.Type] { [Photo.self] }

  @Model
  final class Photo {
    var name: String
    var size: Int = 0
    @Attribute(.externalStorage) var image: Data?
    // Inside the store from now on.
    var thumbnail: Data?

    init(name: String) { self.name = name }
  }
}

enum PhotosPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [PhotosSchemaV1.self, PhotosSchemaV2.self] }
  static var stages: [MigrationStage] {
    [
      .custom(
        fromVersion: PhotosSchemaV1.self, toVersion: PhotosSchemaV2.self, willMigrate: nil,
        didMigrate: { context in
          for photo in try context.fetch(FetchDescriptor<PhotosSchemaV2.Photo>()) {
            photo.size = photo.image?.count ?? 0
            if photo.name == "doubled", let image = photo.image { photo.image = image + image }
            if photo.name == "shortened" { photo.image = photo.image?.prefix(10) }
          }
        })
    ]
  }
}

#InstarPlugin(PhotosPlan.self)
