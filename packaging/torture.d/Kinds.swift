import Glibc
import Instar

// The plans of Torture.swift by stages of other kinds, with the same results: a bridge and a transform. The name of a
// row may tell them to fail when they come to it: "parcel 12 !throw! xxx".

enum Mark: Substring {
  case `throw`, die, abort, exit, `break`, drop, unlink, rename

  init?(in name: String) {
    let parts = name.split(separator: "!", maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count == 3 else { return nil }
    self.init(rawValue: parts[1])
  }

  /// Does what any code can do in the middle of its rows.
  func fail() throws {
    switch self {
    case .throw: throw Refusal()
    case .die: kill(getpid(), SIGKILL)
    case .abort: Glibc.abort()
    case .exit: _exit(0)
    case .break, .drop, .unlink, .rename: break
    }
  }
}

enum KindParcelsPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [ParcelsV1.self, ParcelsV2.self] }
  static var invariants: [Invariant] {
    [
      .rowsKept(of: ParcelsV2.Parcel.self), .relationshipsKept(of: ParcelsV2.Parcel.self),
      .returnsNothing("SELECT Z_PK FROM ZPARCEL WHERE ZSIZE < 0", named: "no size is negative"),
      .staysEqual("SELECT Z_PK, ZNAME FROM ZPARCEL ORDER BY Z_PK", named: "names stay"),
    ]
  }
  static var stages: [MigrationStage] {
    [
      .bridge(fromVersion: ParcelsV1.self, toVersion: ParcelsV2.self, label: "LabelParcels") {
        old, new in
        try new.enumerate(FetchDescriptor<ParcelsV2.Parcel>()) { parcel in
          guard let before = try old.counterpart(of: parcel, as: ParcelsV1.Parcel.self) else {
            throw Refusal()
          }
          let mark = Mark(in: before.name)
          try mark?.fail()
          parcel.size = mark == .break ? -1 : before.size + 1000
          parcel.label = "parcel of \(parcel.size)"
          if parcel.size % 4 == 0, let content = before.content {
            parcel.content = Data(content.reversed())
          }
          if mark == .unlink { parcel.shelf = nil }
          if mark == .rename { parcel.name = "another one" }
          if mark == .drop { new.delete(parcel) }
        }
      }
    ]
  }
}

enum KindAccountsPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [AccountsV1.self, AccountsV2.self] }
  static var invariants: [Invariant] {
    [
      .rowsKept, .relationshipsKept,
      .returnsNothing("SELECT id FROM account WHERE cents < 0", named: "no account is overdrawn"),
    ]
  }
  static var stages: [MigrationStage] {
    [
      .transform(fromVersion: AccountsV1.self, toVersion: AccountsV2.self, label: "LabelAccounts") {
        Transform(AccountsV1.Account.self, AccountsV2.Account.self)
          .set(\.cents, from: \.balance, \.owner) { balance, owner in
            let mark = Mark(in: owner)
            try mark?.fail()
            return mark == .break ? -1 : balance + 1000
          }
          .set(\.label, from: \.balance) { "account of \($0 + 1000)" }
      }
    ]
  }
}

#InstarPlugin(KindParcelsPlan.self, KindAccountsPlan.self)
