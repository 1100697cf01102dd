import InstarSchema

/// The result of `ModelContext.model(for:)`, which cannot throw, for an entity that the schema does not have.
final class UnknownModel: PersistentModel {
  static var schemaMetadata: [Schema.PropertyMetadata] { [] }
  static let _modelDescriptor = ModelDescriptor(UnknownModel.self, name: "")
  let _modelStorage: ModelStorage

  init(_modelStorage: ModelStorage) { self._modelStorage = _modelStorage }

  convenience init() {
    let storage = ModelStorage(Self._modelDescriptor)
    storage.state = .gone
    self.init(_modelStorage: storage)
    storage.model = self
  }
}
