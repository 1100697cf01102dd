import Instar

// The plans of Torture.swift without code. Their stages write the schema alone, so that Instar compares pages.

enum LightParcelsPlan: SchemaMigrationPlan {
  // A new column that comes before others would rebuild its table.
  static var columnOrder: ColumnOrder { .asAdded }
  static var schemas: [any VersionedSchema.Type] { [ParcelsV1.self, ParcelsV2.self] }
  static var stages: [MigrationStage] {
    [.lightweight(fromVersion: ParcelsV1.self, toVersion: ParcelsV2.self)]
  }
}

enum LightAccountsPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [AccountsV1.self, AccountsV2.self] }
  static var stages: [MigrationStage] {
    [.lightweight(fromVersion: AccountsV1.self, toVersion: AccountsV2.self)]
  }
}

#InstarPlugin(LightParcelsPlan.self, LightAccountsPlan.self)
