import Foundation

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
    guard !descriptor.isStorageOnly, let announced else {
      return descriptor.type.init(_modelStorage: storage)
    }
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

/// A model whose objects have nothing in memory but their storage.
///
/// The expansion of `@Model` by `instarctl plugin build` adds the conformance; do not write it yourself. It adds it to
/// a final class without superclass whose stored properties are all persisted. Their backing variables
/// (`PersistedProperty`) have size zero.
///
/// It is not a class protocol: in an extension of one, an initializer cannot assign `self`.
public protocol _StorageOnlyModel {}

extension _StorageOnlyModel {
  /// Creates the object of a row, and calls no initializer of the class.
  public init(_modelStorage storage: ModelStorage) {
    // A Swift object begins with a pointer to its class, then the reference count, then its variables. So this object
    // and one of `Self` differ only in the class pointer. The class also decides how the object is destroyed.
    let object = StorageOnlyObject.make(storage)
    Unmanaged.passUnretained(object).toOpaque().storeBytes(
      of: unsafeBitCast(Self.self, to: UnsafeRawPointer.self), as: UnsafeRawPointer.self)
    self = unsafeBitCast(object, to: Self.self)
  }
}

/// What all objects of classes that are `_StorageOnlyModel` are in memory.
private final class StorageOnlyObject {
  let storage: ModelStorage

  private init(_ storage: ModelStorage) { self.storage = storage }

  /// Not inlined, so that the optimizer does not know the class of the object.
  @inline(never) static func make(_ storage: ModelStorage) -> AnyObject {
    StorageOnlyObject(storage)
  }
}
