public import InstarSchema
public import Observation

/// A class whose instances are rows of a store. `@Model` makes a class conform; nobody writes the members by hand.
public protocol PersistentModel: AnyObject, Observable, Hashable, Identifiable, SendableMetatype {
  /// The persisted properties, in source order.
  static var schemaMetadata: [Schema.PropertyMetadata] { get }
  /// What the SDK knows of the class; one instance for each class.
  static var _modelDescriptor: ModelDescriptor { get }
  /// Where the values are kept.
  var _modelStorage: ModelStorage { get }
  /// Makes the object for a row that is in the store already.
  init(_modelStorage: ModelStorage)
}

extension PersistentModel {
  /// Which row of which store this is. Before the first `save()` it is a temporary one.
  public var persistentModelID: PersistentIdentifier { _modelStorage.persistentIdentifier }

  /// The same as `persistentModelID`; a model's own `id` takes its place.
  public var id: PersistentIdentifier { persistentModelID }

  /// The context the model is in, or `nil` before `insert(_:)` and after its deletion was saved.
  public var modelContext: ModelContext? { _modelStorage.context }

  /// Whether there are changes that `save()` would write.
  public var hasChanges: Bool { _modelStorage.hasChanges }

  /// Whether the model will be deleted, or was, by `save()`.
  public var isDeleted: Bool { _modelStorage.isDeleted }

  /// One row is one object within a context, so identity is equality.
  public static func == (left: Self, right: Self) -> Bool { left === right }

  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
