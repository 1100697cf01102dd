import InstarSchema

/// What `ModelContext.model(for:)`, which cannot throw, returns for an identifier whose entity the schema does not have.
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
