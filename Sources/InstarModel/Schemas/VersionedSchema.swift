public import InstarSchema

/// One version of an app's models. It names all models, also those that did not change.
public protocol VersionedSchema: SendableMetatype {
  /// The model classes of the version.
  static var models: [any PersistentModel.Type] { get }
  /// The version, unique within a plan.
  static var versionIdentifier: Schema.Version { get }
}
