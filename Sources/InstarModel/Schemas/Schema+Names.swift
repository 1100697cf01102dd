public import InstarSchema

extension Schema {
  /// Returns the name of a model's entity: the name of the class, without the types around it.
  public static func entityName<Model: PersistentModel>(for type: Model.Type) -> String {
    type._modelDescriptor.name
  }

  /// The version of the form that `save(to:)` writes. It is unrelated to `version`, the version of the models.
  public static var schemaEncodingVersion: Version { Version(1, 0, 0) }
  /// The same as `schemaEncodingVersion`.
  public var encodingVersion: Version { Self.schemaEncodingVersion }
}
