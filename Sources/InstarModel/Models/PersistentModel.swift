public import InstarSchema
public import Observation

/// A class whose instances are rows of a store. `@Model` adds the conformance and its members; do not write them
/// yourself.
public protocol PersistentModel: AnyObject, Observable, Hashable, Identifiable, SendableMetatype,
  _RowInitializable
{
  /// The persisted properties, in source order.
  static var schemaMetadata: [Schema.PropertyMetadata] { get }
  /// The description of the class; one instance for each class.
  static var _modelDescriptor: ModelDescriptor { get }
  /// The storage of the values.
  var _modelStorage: ModelStorage { get }
}

extension PersistentModel {
  /// Identifies the model's row and store. Before the first `save()` it is temporary.
  public var persistentModelID: PersistentIdentifier { _modelStorage.persistentIdentifier }

  /// The same as `persistentModelID`, unless the model declares its own `id`.
  public var id: PersistentIdentifier { persistentModelID }

  /// The context of the model; `nil` before `insert(_:)` and after a save has deleted it.
  public var modelContext: ModelContext? { _modelStorage.context }

  /// Whether the model has changes that `save()` would write.
  public var hasChanges: Bool { _modelStorage.hasChanges }

  /// Whether the next `save()` will delete the model, or a save has deleted it.
  public var isDeleted: Bool { _modelStorage.isDeleted }

  /// The members that every model has, for errors.
  static var namedMembers: [(path: AnyKeyPath, name: String)] {
    [
      (\Self.persistentModelID, "persistentModelID"), (\Self.modelContext, "modelContext"),
      (\Self.hasChanges, "hasChanges"), (\Self.isDeleted, "isDeleted"),
    ]
  }

  /// Compares identity, because a context has one object for each row.
  public static func == (left: Self, right: Self) -> Bool { left === right }

  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
