public import InstarSchema

/// The end of one run. As JSON this is the output of `instarctl migrate --json`, one object per store, and a line of
/// the ledger. Optional fields are left out if they do not apply.
public struct RunReport: Sendable, Codable, Hashable {
  /// How a run ended.
  public enum Result: String, Sendable, Codable, Hashable, CaseIterable {
    /// The store was migrated to the last version of the plan.
    case migrated
    /// The store was brought back to a backup.
    case restored
    /// The stages were made and verified on a clone, which was thrown away: the store was not changed.
    case rehearsed
    /// The store was at the last version before: nothing was done.
    case current
    /// The run was refused before anything was touched.
    case refused
    /// The run failed; the store is unchanged unless `error.state` says otherwise.
    case failed
    /// Another process holds the store; a later run may succeed.
    case busy
  }

  /// The run identifier.
  public var run: String
  /// The path of the store.
  public var store: String
  /// How the run ended.
  public var result: Result
  /// The name of the plan; left out if no plan matched the store.
  public var plan: String?
  /// The path of the plugin with the plan.
  public var plugin: String?
  /// The store's version before the run; left out if unknown.
  public var from: Schema.Version?
  /// The last version of the plan.
  public var to: Schema.Version?
  /// The start of the run, in seconds since 1970.
  public var startedAt: Double
  /// The time of the whole run, in microseconds.
  public var durationMicroseconds: Int64
  /// The stages that finished, in order.
  public var stages: [Stage]
  /// The rows of each entity, ordered by name.
  public var entities: [Entity]
  /// The links of each relationship, ordered by name.
  public var relationships: [Relationship]
  /// The size of the store's main file before the run, in bytes.
  public var bytes: Int64?
  /// What a rehearsal measured; left out for a migration and a restore. The ledger has no rehearsals.
  public var rehearsal: Rehearsal?
  /// How the store's content was replaced; left out if it was not.
  public var cutover: CutoverKind?
  /// The path of the backup; left out if none was kept.
  public var backup: String?
  /// The folder that the operator chose for a copy of the backup; left out if there is to be none. The copy is made
  /// after the run.
  public var copyTo: BackupFolder?
  /// The path of that copy, which was read back and compared with the manifest; left out if it is not known to exist.
  public var backupCopy: String?
  /// The paths of files that the run made and could not remove; left out if there are none.
  public var leftovers: [String]?
  /// What the manifest beside the backup says, also if that file is lost; left out if no backup was kept.
  public var manifest: BackupManifest?
  /// The run whose backup was restored; left out for a migration.
  public var restoredRun: String?
  /// The processes that had the store open when the run ended as `busy`, as far as this user can see.
  public var holders: [ProbeReport.Holder]?
  /// The hold that keeps a restored store from being migrated again; left out in the ledger.
  public var hold: Hold?
  /// The names of the plan's invariants that were checked and hold; left out if none was.
  public var invariants: [String]?
  /// What a person should know even if the run succeeded, one sentence each.
  public var notes: [String]
  /// Why the run ended without `migrated`, `restored`, `rehearsed` or `current`.
  public var error: InstarError?

  /// A report without stages, counts and notes.
  public init(run: String, store: String, result: Result, startedAt: Double) {
    self.run = run
    self.store = store
    self.result = result
    self.startedAt = startedAt
    self.durationMicroseconds = 0
    self.stages = []
    self.entities = []
    self.relationships = []
    self.notes = []
  }

  /// What a rehearsal measured. Fields are left out if the rehearsal ended before.
  public struct Rehearsal: Sendable, Codable, Hashable {
    /// The size of the migrated clone, in bytes: the store's main file has it after the migration.
    public var cloneBytes: Int64?
    /// The free space that the migration needs beside the store, in bytes.
    public var neededBytes: Int64?
    /// The fetches of closures that had many rows in memory at once, at most `wholeFetchLimit`; left out if there was
    /// none.
    public var wholeFetches: [WholeFetch]?

    /// Who fixes so many fetches sees the others in the next rehearsal.
    public static let wholeFetchLimit = 20

    /// Nothing measured yet.
    public init() {}

    /// Adds a fetch, up to the limit.
    public mutating func add(_ fetch: WholeFetch) {
      if wholeFetches?.count ?? 0 < Self.wholeFetchLimit {
        wholeFetches = (wholeFetches ?? []) + [fetch]
      }
    }
  }

  /// A stage that finished.
  public struct Stage: Sendable, Codable, Hashable {
    /// The version that the stage started at.
    public var from: Schema.Version
    /// The version that the stage ended at.
    public var to: Schema.Version
    /// What the plan did in the stage.
    public var kind: StageManifest.Kind
    /// The name that the plan gives the stage; left out for a stage without one.
    public var label: String?
    /// The time of the stage, in microseconds.
    public var durationMicroseconds: Int64

    package init(
      from: Schema.Version, to: Schema.Version, kind: StageManifest.Kind, label: String? = nil,
      durationMicroseconds: Int64
    ) {
      self.from = from
      self.to = to
      self.kind = kind
      self.label = label
      self.durationMicroseconds = durationMicroseconds
    }
  }

  /// The rows of an entity before and after the run.
  public struct Entity: Sendable, Codable, Hashable {
    /// The entity's name in the new version, or in the old one if it was removed.
    public var name: String
    /// The rows before the run; left out for an added entity.
    public var rowsBefore: Int?
    /// The rows after the run; left out for a removed entity.
    public var rowsAfter: Int?

    package init(name: String, rowsBefore: Int?, rowsAfter: Int?) {
      self.name = name
      self.rowsBefore = rowsBefore
      self.rowsAfter = rowsAfter
    }
  }

  /// The links of a relationship before and after the run.
  public struct Relationship: Sendable, Codable, Hashable {
    /// Entity and relationship, such as "Note.folder".
    public var name: String
    /// The links before the run; left out for an added relationship.
    public var linksBefore: Int?
    /// The links after the run; left out for a removed relationship.
    public var linksAfter: Int?

    package init(name: String, linksBefore: Int?, linksAfter: Int?) {
      self.name = name
      self.linksBefore = linksBefore
      self.linksAfter = linksAfter
    }
  }
}
