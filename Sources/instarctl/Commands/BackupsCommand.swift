import ArgumentParser

/// `instarctl backups`
struct BackupsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "backups",
    abstract: "List, verify, copy and remove the backups of runs.",
    discussion: """
        instarctl backups list a.store
        instarctl backups verify
        instarctl backups prune --keep 3 a.store
        instarctl backups copy --backup-folder /mnt/backups a.store

      Each run leaves a backup beside its store. The ledger has its manifest: size, content hash, version, \
      and the result of SQLite's check. Without a store, these commands are about all backups in the ledger.
      """,
    subcommands: [
      BackupsListCommand.self, BackupsVerifyCommand.self, BackupsPruneCommand.self,
      BackupsCopyCommand.self,
    ])
}
