import ArgumentParser
import Foundation
import InstarConfiguration
import InstarHooks
import InstarLinux
import InstarSchema
import InstarWire

/// `instarctl config check`
struct ConfigCheckCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "check",
    abstract: "Check whether instard can use its configuration.",
    discussion: """
        instarctl config check

      Reads the file, then the files conf.d/*.yml beside it, in the order of their names. For a key \
      with one value, the last file wins. instard joins the lists 'plugins' and 'watches' of all files. If two files watch \
      the same folder, the later file's watch is used.

      Reports all mistakes at once, each with its file and line. With --json, each mistake is an object with \
      the key 'error'. The exit status is 0 if the configuration can be used, even with notes, 3 if it \
      cannot, and 5 if the file does not exist.
      """)

  @OptionGroup var source: ConfigurationOptions
  @OptionGroup var output: OutputOptions

  private struct CheckedConfiguration: CommandOutput {
    struct Watch: Encodable {
      var folder: String
      var patterns: [String]
      var recursive: Bool
      var sqlDebug: Int
      var whenBusy: BusyPolicy
      var cutover: CutoverPolicy
      var verify: VerificationPolicy
      var policy: String
      var wave: Int
      var plans: [String]
      var parallel: Int?
      var budget: String?
      /// The calendar events at which the window opens.
      var windowOpens: [String]?
      var windowSeconds: Double?

      /// The settings that decide when and how its stores are migrated, without those that are the defaults.
      var line: String {
        var parts = ["  \(folder)", patterns.joined(separator: " ")]
        if recursive { parts.append("recursive") }
        if !plans.isEmpty { parts.append("plan \(plans.joined(separator: " "))") }
        if policy != MigrationPolicy.automatic.rawValue { parts.append("policy \(policy)") }
        if wave != 1 { parts.append("wave \(wave)") }
        if let budget { parts.append("budget \(budget)") }
        if whenBusy != .wait { parts.append("whenBusy \(whenBusy.rawValue)") }
        if cutover != .automatic { parts.append("cutover \(cutover.rawValue)") }
        if verify != .standard { parts.append("verify \(verify.rawValue)") }
        if let parallel { parts.append("parallel \(parallel)") }
        if let windowOpens, let windowSeconds {
          let length = DurationText.format(.milliseconds(Int64(windowSeconds * 1000)))
          parts.append("window \(windowOpens.joined(separator: ", ")) for \(length)")
        }
        return parts.joined(separator: "  ")
      }
    }
    struct Rollout: Encodable {
      /// How many stores have had their turn when each wave ends.
      var waves: [String]
      var soakSeconds: Double
      var budget: String?

      init(_ settings: RolloutSettings) {
        waves = settings.steps.map(\.description)
        soakSeconds = settings.soak.inSeconds
        budget = settings.budget?.description
      }

      var line: String {
        let soak = DurationText.format(.milliseconds(Int64(soakSeconds * 1000)))
        return "  rollout  waves \(waves.joined(separator: ", "))  soak \(soak)  "
          + (budget.map { "budget \($0)" } ?? "no budget")
      }
    }

    struct Metrics: Encodable {
      var listen: String?
      var textfile: String?

      init?(_ settings: MetricsSettings) {
        guard settings.areRead else { return nil }
        listen = settings.address.map { "\($0)" }
        textfile = settings.textFile
      }
    }

    struct Coordinator: Encodable {
      var endpoints: [String]
      /// Left out for the machine's name.
      var host: String?
      var leaseSeconds: Double
      var onCoordinatorLoss: String

      init(_ settings: CoordinatorSettings) {
        endpoints = settings.endpoints
        host = settings.host
        leaseSeconds = settings.lease.inSeconds
        onCoordinatorLoss = settings.onLoss.rawValue
      }
    }

    var files: [String]
    var state: String
    var plugins: [String]
    var watches: [Watch]
    var rollout: Rollout?
    var coordinator: Coordinator?
    var metrics: Metrics?
    /// Settings that are valid but have no, or another, effect.
    var notes: [String]

    var lines: [ConsoleLine] {
      let names = files.map { "'\($0)'" }.joined(separator: ", ")
      return ["\(names) can be used"] + watches.map { "\($0.line)" }
        + [rollout?.line].compactMap(\.self).map { "\($0)" }
    }
  }

  func perform() async throws(InstarError) -> ExitStatus {
    let (configuration, errors) = Configuration.check(path: source.path)
    let mistakes =
      errors.map { source.completing($0, command: "check") }
      + ServiceDropIn.refusals(of: configuration, source: source.path)
    guard mistakes.isEmpty else { return report(mistakes) }
    let files = try Configuration.files(path: source.path)
    let dropIn = try ServiceDropIn(configuration, source: source.path)
    var notes = dropIn.notes
    if configuration.watches.isEmpty {
      notes.append(
        "instard migrates no store: no folder is watched; add one to 'watches', see instard.yml(5)")
    }
    for folder in configuration.watches.map(\.folder) {
      if let note = Self.note(onFolder: folder, else: "instard watches it once it exists") {
        notes.append(note)
      } else if let problem = StoreTrust.problem(ofFolder: folder) {
        let next = problem.next.map { "; \($0)" } ?? ""
        notes.append("instard refuses the stores in '\(folder)': \(problem.cause)\(next)")
      }
    }
    notes += Self.notes(onWavesOf: configuration)
    if let file = configuration.metrics.textFile {
      let folder = file.parentFolder
      notes += [
        Self.note(onFolder: folder, else: "instard writes no metrics there until it exists")
      ].compactMap(\.self)
    }
    notes += Self.notes(onBackupFoldersOf: configuration)
    notes += Self.notes(onPluginsOf: configuration)
    notes += Self.notes(onFilesBeside: source.path)
    notes += Self.notes(onKeysOf: configuration)
    notes += Self.notes(onPlansOf: configuration)
    notes += try Self.notes(onWindowsOf: configuration)
    notes += Self.notes(onCoordinatorOf: configuration)
    notes += Self.notes(onHooksOf: configuration)
    if source.path == ServiceConfiguration.file, ServiceUnit.isInstalled,
      dropIn.contents != ServiceUnit.content(of: ServiceDropIn.defaultPath)
    {
      notes.append(
        "the service's unit does not match this configuration; run: sudo instarctl config apply")
    }
    output.write(
      CheckedConfiguration(
        files: files, state: configuration.stateFolder, plugins: configuration.pluginFolders,
        watches: configuration.watches.map {
          CheckedConfiguration.Watch(
            folder: $0.path, patterns: $0.patterns, recursive: $0.isRecursive,
            sqlDebug: $0.sqlDebugLevel, whenBusy: $0.whenBusy, cutover: $0.cutover,
            verify: $0.verification, policy: $0.policy.rawValue, wave: $0.wave, plans: $0.plans,
            parallel: $0.parallelRuns, budget: $0.budget?.description,
            windowOpens: $0.window?.opens.map(\.text), windowSeconds: $0.window?.length.inSeconds)
        }, rollout: configuration.rollout.map(CheckedConfiguration.Rollout.init),
        coordinator: configuration.coordinator.map(CheckedConfiguration.Coordinator.init),
        metrics: CheckedConfiguration.Metrics(configuration.metrics), notes: notes))
    if !output.json { Console.note(notes.map { "note: \($0)" }) }
    return .done
  }

  /// In JSON each mistake is an object. In the text, those of one file are one error, with a line for each mistake.
  private func report(_ mistakes: [InstarError]) -> ExitStatus {
    var errors: [InstarError] = []
    for mistake in mistakes {
      if output.json { Console.write(json: ["error": mistake]) }
      if let last = errors.last, last.what == mistake.what, last.next == mistake.next {
        errors[errors.count - 1].cause += "\n\(mistake.cause)"
      } else {
        errors.append(mistake)
      }
    }
    for error in errors { Console.note(error) }
    return ExitStatus(for: mistakes)
  }

  private static func missing(_ path: String, else consequence: String) -> String {
    "'\(path)' does not exist: \(consequence); create it, or correct the path"
  }

  /// Returns a note on a path that should be that of a folder; `nil` where it is.
  private static func note(onFolder path: String, else consequence: String) -> String? {
    guard FilePath.exists(path) else { return missing(path, else: consequence) }
    guard let status = stat(following: path), !status.isFolder else { return nil }
    return "'\(path)' is not a folder, and instard cannot use it; correct the path"
  }

  private static func notes(onPluginsOf configuration: Configuration) -> [String] {
    configuration.namedPluginFolders.compactMap {
      note(onFolder: $0, else: "instard uses no plugins from there")
    }
  }

  private static func notes(onBackupFoldersOf configuration: Configuration) -> [String] {
    let folders = [configuration.backupFolder] + configuration.watches.map(\.backupFolder)
    return Set(folders.compactMap(\.self)).sorted().compactMap { folder in
      guard (RealPath.of(folder) ?? folder).lastName != InstarFolder.name else {
        return "instard makes no copies of backups in '\(folder)': in a folder '.instar' it keeps "
          + "the backups themselves; name another folder, best on another disk"
      }
      return note(onFolder: folder, else: "instard makes no copies of backups until it exists")
    }
  }

  private static func notes(onHooksOf configuration: Configuration) -> [String] {
    let (settings, standard) = (configuration.hooks, HookSettings())
    let folder = HookFolder(settings.folder)
    var notes = folder.notes()
    // The standard folder is optional, and without hooks nobody needs the standard user.
    if settings.folder != standard.folder {
      notes += [note(onFolder: settings.folder, else: "instard runs no hooks from there")]
        .compactMap(\.self)
    }
    guard settings.user != standard.user || HookFolder.events.contains(where: folder.hasHooks)
    else { return notes }
    do throws(InstarError) {
      _ = try HookRunner.user(named: settings.user)
    } catch {
      notes.append("instard runs no hook: \(error.cause)\(error.next.map { "; \($0)" } ?? "")")
    }
    return notes
  }

  /// Files in `conf.d` that look like a part of the configuration, and are not read.
  private static func notes(onFilesBeside source: String) -> [String] {
    let folder = source.sibling("conf.d")
    // A folder that cannot be read is a mistake, which has been reported.
    let names = (try? FolderNames.all(in: folder, suffix: ".yaml")) ?? []
    return names.sorted().map {
      "'\(folder)/\($0)' is not read, because its name does not end in .yml"
    }
  }

  private static func notes(onKeysOf configuration: Configuration) -> [String] {
    guard configuration.requiresSignature else { return [] }
    let trusted = TrustedKeys.ofDaemon(using: configuration.trustedKeysFolder)
    let notes = trusted.problems.map { "\($0.what): \($0.cause)" }
    guard trusted.keys.isEmpty else { return notes }
    return notes + [
      "instard uses no plugin: 'requireSignature' is set, and no key is in '\(trusted.folder)'"
    ]
  }

  private static func notes(onPlansOf configuration: Configuration) -> [String] {
    guard configuration.watches.contains(where: { !$0.plans.isEmpty }),
      let known = InstalledPlugins.planNames(configuration)
    else { return [] }
    return configuration.watches.flatMap { watch in
      watch.plans.filter { !known.contains($0) }.map {
        "the watch of '\(watch.path)': " + PlanSelection.reason(forMissing: $0, known: known)
      }
    }
  }

  /// A calendar event with a year may be over.
  private static func notes(
    onWindowsOf configuration: Configuration
  ) throws(InstarError) -> [String] {
    var notes: [String] = []
    for watch in configuration.watches {
      let state = try watch.window?.state(at: Date().timeIntervalSince1970)
      guard let state, !state.isOpen, state.changesAt == nil else { continue }
      notes.append("instard migrates no store in '\(watch.path)': its window never opens again")
    }
    return notes
  }

  private static func notes(onCoordinatorOf configuration: Configuration) -> [String] {
    guard let settings = configuration.coordinator else { return [] }
    let files = [settings.authority, settings.certificate, settings.key].compactMap(\.self)
    var notes = files.filter { !FilePath.exists($0) }.map {
      Self.missing($0, else: "instard starts no run without it")
    }
    if let program = try? Installation.locate().coordinator, !FilePath.exists(program) {
      notes.append(
        "instard starts no run: 'coordinator' is set, and the package instar-coordinator is not installed"
      )
    }
    return notes
  }

  /// A wave that does not exist is the last one.
  private static func notes(onWavesOf configuration: Configuration) -> [String] {
    let waves = configuration.rollout?.steps.count ?? 1
    let single =
      configuration.rollout != nil && waves == 1
      ? ["'rollout' has one wave with all stores, because it names neither 'canary' nor 'waves'"]
      : []
    return single
      + configuration.watches.filter { $0.wave > waves }.map { watch in
        let reason =
          configuration.rollout == nil
          ? "there is no 'rollout'" : "'rollout' has \(waves.counted("wave"))"
        return "'wave: \(watch.wave)' of '\(watch.path)' counts as \(waves): \(reason)"
      }
  }
}
