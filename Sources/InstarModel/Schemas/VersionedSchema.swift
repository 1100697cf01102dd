public import InstarSchema

/// One version of an app's models, changed or not. Models that the listed ones reference belong to it too.
public protocol VersionedSchema: SendableMetatype {
  /// The model classes of the version.
  static var models: [any PersistentModel.Type] { get }
  /// The version, unique within a plan.
  static var versionIdentifier: Schema.Version { get }
}
