import Instar

// A plan of Torture.swift by SQL statements, with the same results. The name of a row may tell the statement to fail
// when it comes to it: "account 12 !throw! xxx".

enum StatementAccountsPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [AccountsV1.self, AccountsV2.self] }
  static var invariants: [Invariant] {
    [
      .rowsKept, .relationshipsKept,
      .returnsNothing("SELECT id FROM account WHERE cents < 0", named: "no account is overdrawn"),
    ]
  }
  static var stages: [MigrationStage] {
    [
      .sql(
        fromVersion: AccountsV1.self, toVersion: AccountsV2.self, label: "LabelAccounts",
        // SQLite has no absolute value of the least integer: the statement fails.
        before: [
          """
          UPDATE account SET balance = CASE
            WHEN owner LIKE '%!throw!%' THEN abs(-9223372036854775808)
            WHEN owner LIKE '%!break!%' THEN -1
            ELSE balance + \(1000) END
          """
        ],
        after: ["UPDATE account SET label = 'account of ' || cents"])
    ]
  }
}

#InstarPlugin(StatementAccountsPlan.self)
