import Instar

// The plans of Torture.swift by stages of other kinds, with the same results: a bridge and a transform.

enum KindParcelsPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [ParcelsV1.self, ParcelsV2.self] }
  static var stages: [MigrationStage] {
    [
      .bridge(fromVersion: ParcelsV1.self, toVersion: ParcelsV2.self, label: "LabelParcels") {
        old, new in
        try new.enumerate(FetchDescriptor<ParcelsV2.Parcel>()) { parcel in
          guard let before = try old.counterpart(of: parcel, as: ParcelsV1.Parcel.self) else {
            throw Refusal()
          }
          parcel.size = before.size + 1000
          parcel.label = "parcel of \(parcel.size)"
          if parcel.size % 4 == 0, let content = before.content {
            parcel.content = Data(content.reversed())
          }
        }
      }
    ]
  }
}

enum KindAccountsPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [AccountsV1.self, AccountsV2.self] }
  static var stages: [MigrationStage] {
    [
      .transform(fromVersion: AccountsV1.self, toVersion: AccountsV2.self, label: "LabelAccounts") {
        Transform(AccountsV1.Account.self, AccountsV2.Account.self)
          .set(\.cents, from: \.balance) { $0 + 1000 }
          .set(\.label, from: \.balance) { "account of \($0 + 1000)" }
      }
    ]
  }
}

#InstarPlugin(KindParcelsPlan.self, KindAccountsPlan.self)
