import Foundation
import InstarSchema
@_spi(Reflection) import Swift

/// Creates the objects of rows.
///
/// Objects of a class that has nothing in memory but its storage are made without an initializer.
///
/// In all other classes Swift sets the initial values of all properties in every initializer, also in the one that
/// takes the storage of a row. They go to the storage that the object was created with, which that initializer
/// then replaces. So this first storage stays without slots, and ignores the values: filling it would take longer than
/// reading the row.
enum RowObject {
  /// Holds the description of the class whose first storage the thread is about to create. `nil` if the process has no
  /// key left; first storages are then filled in vain.
  private static let announced: pthread_key_t? = {
    var key = pthread_key_t()
    return pthread_key_create(&key, nil) == 0 ? key : nil
  }()

  static func make(_ storage: ModelStorage) -> any PersistentModel {
    let descriptor = storage.descriptor
    if descriptor.isStorageOnly { return StorageOnlyObject.make(storage, of: descriptor.type) }
    guard let announced else { return descriptor.type.init(_modelStorage: storage) }
    pthread_setspecific(announced, Unmanaged.passUnretained(descriptor).toOpaque())
    defer { pthread_setspecific(announced, nil) }
    return descriptor.type.init(_modelStorage: storage)
  }

  /// Returns whether the storage that is being created is the first one of a row's object. Only the first call for an
  /// object does: initial values may create other models.
  static func isFirstStorage(_ descriptor: ModelDescriptor) -> Bool {
    guard let announced,
      pthread_getspecific(announced) == Unmanaged.passUnretained(descriptor).toOpaque()
    else { return false }
    pthread_setspecific(announced, nil)
    return true
  }
}

/// Creates a model from the storage of its row.
///
/// `PersistentModel` inherits it. It is not a class protocol: in an extension of one, an initializer cannot assign
/// `self`.
public protocol _RowInitializable {
  /// Creates the object for an existing row.
  init(_modelStorage: ModelStorage)
}

extension _RowInitializable {
  /// For classes that have nothing in memory but their storage. `instarctl plugin build` gives these no initializer of
  /// their own, because the compiler would need a sixth of a build for it.
  public init(_modelStorage storage: ModelStorage) {
    let descriptor = storage.descriptor
    guard descriptor.isStorageOnly, let object = RowObject.make(storage) as? Self else {
      UnansweredRead.end(
        with: InstarError(
          .invalidModel, "cannot create the object of a row of \(descriptor.name)",
          cause:
            "the class has no initializer for rows, and its objects store more than '_$storage'",
          next: "declare the class with '@Model'"))
    }
    self = object
  }
}

/// What all objects of classes that have nothing in memory but their storage are in memory.
final class StorageOnlyObject {
  private let storage: ModelStorage

  private init(_ storage: ModelStorage) { self.storage = storage }

  /// Whether all objects of a class are like this. The layout of the class tells, so stored properties count wherever
  /// they come from: the author, a superclass, a property wrapper or another macro. The variables of persisted
  /// properties have size zero.
  static func describes(_ type: any PersistentModel.Type) -> Bool {
    // An initializer of a superclass may do more than to set its properties.
    guard _getSuperclass(type) == nil else { return false }
    var hasStorage = false
    // `classType`, which is a variable to the compiler.
    let options = _EachFieldOptions(rawValue: 1)
    let hasNothingElse = _forEachField(of: type, options: options) { _, offset, field, _ in
      if field == PersistedProperty.self { return true }
      guard field == ModelStorage.self, offset == MemoryLayout<Header>.size else { return false }
      hasStorage = true
      return true
    }
    return hasStorage && hasNothingElse
  }

  /// A Swift object begins with a pointer to its class, then the reference count, then its variables.
  private typealias Header = (type: UnsafeRawPointer, count: UInt)

  /// Creates an object of another class, and calls no initializer of that class.
  static func make<Model: PersistentModel>(
    _ storage: ModelStorage, of type: Model.Type
  ) -> any PersistentModel {
    // This object and one of `Model` differ only in the class pointer. The class also decides how the object is
    // destroyed.
    let object = make(storage)
    Unmanaged.passUnretained(object).toOpaque().storeBytes(
      of: unsafeBitCast(type, to: UnsafeRawPointer.self), as: UnsafeRawPointer.self)
    return unsafeDowncast(object, to: Model.self)
  }

  /// Not inlined, so that the optimizer does not know the class of the object.
  @inline(never) private static func make(_ storage: ModelStorage) -> AnyObject {
    StorageOnlyObject(storage)
  }
}
