public import InstarSchema

/// A complete snapshot of an app's models at one version: all of them, changed or not.
public protocol VersionedSchema: SendableMetatype {
  static var models: [any PersistentModel.Type] { get }
  static var versionIdentifier: Schema.Version { get }
}
