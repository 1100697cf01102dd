/// Models in an order, to compare and assign.
///
/// Code changes long relationships by one model at a time, and assigns the whole array each time. So the identities can
/// be compared in one piece of memory, and only the models of a part are read.
protocol ModelList {
  var count: Int { get }
  /// The models in a part of the list, converted without examining each one, as a cast would.
  func models(in range: Range<Int>) -> [any PersistentModel]
  /// The identities in the order of the models. The memory is valid in `body` only.
  func withIdentities<Result>(_ body: (UnsafeBufferPointer<ObjectIdentifier>) -> Result) -> Result
}

extension ModelList {
  var models: [any PersistentModel] { models(in: 0..<count) }
}

/// An array of models, as a type.
protocol ModelArray: ModelList {
  static var modelType: any PersistentModel.Type { get }
}

extension Array: ModelList, ModelArray where Element: PersistentModel {
  static var modelType: any PersistentModel.Type { Element.self }

  func models(in range: Range<Int>) -> [any PersistentModel] { self[range].map { $0 } }

  func withIdentities<Result>(
    _ body: (UnsafeBufferPointer<ObjectIdentifier>) -> Result
  ) -> Result {
    // An array of a class stores references, and an identity has the bits of the reference.
    withUnsafeBufferPointer { $0.withMemoryRebound(to: ObjectIdentifier.self, body) }
  }
}

/// Models of different classes.
struct MixedModels: ModelList {
  let models: [any PersistentModel]

  init(_ models: [any PersistentModel]) { self.models = models }

  var count: Int { models.count }

  func models(in range: Range<Int>) -> [any PersistentModel] { Array(models[range]) }

  func withIdentities<Result>(
    _ body: (UnsafeBufferPointer<ObjectIdentifier>) -> Result
  ) -> Result {
    models.map { ObjectIdentifier($0) }.withUnsafeBufferPointer(body)
  }
}
