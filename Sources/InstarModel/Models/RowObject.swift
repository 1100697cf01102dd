import Foundation

/// Creates the objects of rows.
///
/// Swift sets the initial values of all properties in every initializer, also in the one that takes the storage of a
/// row. They go to the storage that the object was created with, which that initializer then replaces. So this first
/// storage stays without slots, and ignores the values: filling it would take longer than reading the row.
enum RowObject {
  /// Holds the description of the class whose first storage the thread is about to create. `nil` if the process has no
  /// key left; first storages are then filled in vain.
  private static let announced: pthread_key_t? = {
    var key = pthread_key_t()
    return pthread_key_create(&key, nil) == 0 ? key : nil
  }()

  static func make(_ storage: ModelStorage) -> any PersistentModel {
    let descriptor = storage.descriptor
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
