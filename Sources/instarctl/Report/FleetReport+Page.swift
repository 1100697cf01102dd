import Foundation
import InstarSchema
import InstarWire

/// The report as one page of HTML that loads nothing: styles and plots are in it, and it runs no script.
extension FleetReport {
  private static let failuresOnPage = 30
  private static let plansOnPage = 12
  private static let runsInTable = 20

  /// The whole page.
  var page: String {
    let progress = plans.prefix(Self.plansOnPage).compactMap(progressCard)
    // In two columns, so that no place is empty.
    let isWide = (progress.count + (stores.isEmpty ? 0 : 1)) % 2 == 1
    let body: PageText = """
      <header>
      <div><h1>Fleet report</h1><p class="sub">\(Quantity.time(secondsSince1970: madeAt)) · \(ledgerText)</p></div>
      \(daemonBadge)
      </header>
      <main>
      \(notices)
      \(tiles)
      \(statesCard)
      \(progress)
      \(card("Runs over time", runsPlot(width: isWide ? 1300 : 640), isWide: isWide, legend: [(.good, "migrated"), (.busy, "busy"), (.warning, "refused"), (.bad, "failed"), (.other, "other")]))
      \(card("How long migrations take", durationPlot(), note: durations.map { "The longest took \(Self.duration($0.most))." }))
      \(card("How large migrated stores are", sizePlot(), note: sizes.map { "The largest has \(Quantity.bytes(Int64($0.most)))." }))
      \(card("Duration by size", durationBySizePlot(), note: "A larger dot stands for more runs."))
      \(failuresCard)
      \(runsCard("Longest migrations", longestRuns))
      \(runsCard("Last runs", runs.suffix(Self.runsInTable).reversed()))
      </main>
      <footer>Made by <code>instarctl report --html</code>. Times are in UTC.</footer>
      """
    return Self.document(body).html
  }

  private static func document(_ body: PageText) -> PageText {
    """
    <!DOCTYPE html>
    <html lang="en">
    <head>
    <meta charset="utf-8">
    <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>Instar: fleet report</title>
    <style>
    \(PageText(stringLiteral: PageStyle.sheet))
    </style>
    </head>
    <body>
    \(body)
    </body>
    </html>

    """
  }

  // MARK: The head

  private var daemonBadge: PageText {
    guard let daemon else { return "<span class=\"badge muted\">instard not reached</span>" }
    let style: PageText = daemon.pause == nil ? "good" : "warning"
    let state = daemon.pause == nil ? daemon.phase.rawValue : "paused"
    return "<span class=\"badge \(style)\">instard \(daemon.version) · \(state)</span>"
  }

  /// What needs somebody's attention, and what the report does not show.
  private var notices: PageText {
    var all: [PageText] = []
    if let pause = daemon?.pause {
      all.append(
        notice("warning", "instard is paused by \(pause.by)", pause.why, next: "instarctl resume"))
    }
    for plan in plans {
      guard let halt = plan.progress?.halt ?? (daemon == nil ? plan.rollout?.halt : nil) else {
        continue
      }
      all.append(
        notice(
          "bad", "The rollout of \(plan.plan) is halted by \(halt.by)", halt.why,
          next: "instarctl resume --plan \(plan.plan)"))
    }
    for folder in daemon?.folders ?? [] {
      guard let error = folder.error else { continue }
      all.append(notice("bad", "\(folder.folder) cannot be watched", error.cause, next: error.next))
    }
    all += missing.map { notice("muted", "Missing from this report", $0, next: nil) }
    return all.isEmpty ? "" : "<section class=\"notices\">\(all)</section>"
  }

  private func notice(_ style: PageText, _ title: String, _ text: String?, next: String?)
    -> PageText
  {
    let more = text.map { PageText(": \($0)") } ?? ""
    let command: PageText =
      next.map { " <code>\(CommandText.completing($0, .instard(option: option)))</code>" } ?? ""
    return "<p class=\"notice \(style)\"><strong>\(title)</strong>\(more)\(command)</p>\n"
  }

  // MARK: Tiles

  private var tiles: PageText {
    func count(_ state: StoreState) -> Int {
      stores.filter { $0.state == state }.map(\.stores).reduce(0, +)
    }
    let unsolved = failures.map(\.unsolved).reduce(0, +)
    var tiles: [PageText] = []
    if let daemon {
      let quarantined = daemon.activities[Manager.Activity.quarantined.rawValue] ?? 0
      tiles = [
        tile("Stores", Quantity.grouped(stores.map(\.stores).reduce(0, +)), "known to instard"),
        tile(
          "Current", Quantity.grouped(count(.current)), "at the last version of their plan", "good"),
        tile(
          "Behind", Quantity.grouped(count(.behind)), "at an earlier version",
          count(.behind) > 0 ? "warning" : ""),
        tile(
          "Quarantined", Quantity.grouped(quarantined),
          "not retried until the store or a plugin changes; damaged ones until their file changes",
          quarantined > 0 ? "bad" : ""),
      ]
    } else {
      tiles = [
        tile("Stores", Quantity.grouped(Set(runs.map(\.store)).count), "in the ledger"),
        tile(
          "Migrated", Quantity.grouped(plans.map(\.migrated).reduce(0, +)), "by their last run",
          "good"),
      ]
    }
    tiles += [
      tile(
        "Unresolved", Quantity.grouped(unsolved), "stores whose last attempt failed",
        unsolved > 0 ? "bad" : ""),
      tile("Runs", Quantity.grouped(totals.runs), "in the ledger"),
      tile("Migrated data", Quantity.bytes(totals.bytes), "\(Quantity.grouped(totals.rows)) rows"),
      tile(
        "Median run", durations.map { Self.duration($0.median) } ?? "–",
        durations.map { "90 % at most \(Self.duration($0.ninetyPercent))" } ?? ""),
    ]
    return "<section class=\"tiles\">\(tiles)</section>"
  }

  private func tile(
    _ name: String, _ value: String, _ note: String, _ style: PageText = ""
  ) -> PageText {
    """
    <div class="tile \(style)"><div class="name">\(name)</div><div class="value">\(value)</div><div class="note">\(note)</div></div>

    """
  }

  // MARK: Cards

  private func card(
    _ title: String, _ plot: PageText?, note: String? = nil, isWide: Bool = false,
    legend: [(Plot.Series, String)] = []
  ) -> PageText {
    guard let plot else { return "" }
    let items = legend.map { series, name -> PageText in
      "<span class=\"key\"><i class=\"\(series.pageClass)\"></i>\(name)</span>"
    }
    let below: PageText = note.map { "<p class=\"sub\">\($0)</p>" } ?? ""
    return """
      <section class="card\(isWide ? " wide" : "" as PageText)"><div class="head"><h2>\(title)</h2><div>\(items)</div></div>\(plot)\(below)</section>

      """
  }

  private func progressCard(of plan: Plan) -> PageText? {
    guard let plot = progressPlot(of: plan) else { return nil }
    let text = plan.progress.map(\.summary) ?? recordedSummary(of: plan)
    return card(
      plan.plan, plot, note: text, legend: [(.good, "migrated"), (.bad, "failed")])
  }

  private func recordedSummary(of plan: Plan) -> String {
    let counts =
      "\(Quantity.stores(plan.migrated)) migrated, \(plan.failed) failed by their last run"
    guard let rollout = plan.rollout else { return counts }
    return "Rollout to \(rollout.version), "
      + (rollout.isFinished ? "finished" : rollout.wave == 0 ? "not begun" : "wave \(rollout.wave)")
      + "; \(counts)"
  }

  private var statesCard: PageText {
    guard !stores.isEmpty else { return "" }
    let all = Dictionary(grouping: stores) { $0.plan ?? "" }
    let rows = all.sorted { $0.key < $1.key }.map { plan, groups -> PageText in
      let count = groups.map(\.stores).reduce(0, +)
      let parts = groups.map { group -> PageText in
        let state = group.state?.text ?? "not probed"
        return """
          <span class="\(Self.style(of: group.state))" style="flex:\(group.stores)" title="\(Quantity.stores(group.stores)) \(state)"></span>
          """
      }
      let words = groups.map { group -> PageText in
        """
        <span class="key"><i class="\(Self.style(of: group.state))"></i>\(Quantity.grouped(group.stores)) \(group.state?.text ?? "not probed yet")</span>
        """
      }
      return """
        <div class="states"><div class="head"><strong>\(plan.isEmpty ? "Without a plan" : plan)</strong><span class="sub">\(Quantity.stores(count))</span></div>\
        <div class="stack">\(parts)</div><div>\(words)</div></div>

        """
    }
    return
      "<section class=\"card\"><div class=\"head\"><h2>Stores by state</h2></div>\(rows)</section>\n"
  }

  private static func style(of state: StoreState?) -> PageText {
    switch state {
    case .current: "good"
    case .behind: "warning"
    case .corrupt, .unreadable, .encrypted, .notAStore: "bad"
    case .busy: "busy"
    case .ahead, .unversioned, .unknown, nil: "other"
    }
  }

  // MARK: Failures

  private var failuresCard: PageText {
    guard !failures.isEmpty else {
      return runs.isEmpty
        ? ""
        : "<section class=\"card\"><div class=\"head\"><h2>Failures</h2></div><p class=\"sub\">No run has failed.</p></section>\n"
    }
    let shown = failures.prefix(Self.failuresOnPage).enumerated().map {
      failure($1, isOpen: $0 < 5)
    }
    let rest = failures.count - shown.count
    let more: PageText =
      rest > 0
      ? "<p class=\"sub\">\(rest) more kinds of failures: <code>instarctl report --json\(option)</code></p>"
      : ""
    return """
      <section class="card wide"><div class="head"><h2>Failures and their causes</h2>\
      <span class="sub">failures with the same cause together</span></div>\(Array(shown))\(more)</section>

      """
  }

  private func failure(_ failure: Failure, isOpen: Bool) -> PageText {
    let error = failure.error
    let style: PageText = failure.unsolved > 0 ? "bad" : "muted"
    let solved =
      failure.unsolved == 0
      ? "all resolved since"
      : failure.unsolved == failure.stores ? "unresolved" : "\(failure.unsolved) unresolved"
    let facts = [
      error.stage.map { ("stage", $0) }, failure.plan.map { ("plan", $0) },
      error.state.map { ("store", $0) },
      failure.lastAt.map { ("last", Quantity.time(secondsSince1970: $0)) },
      error.next.map { ("next", CommandText.completing($0, .instard(option: option))) },
    ].compactMap(\.self).map { name, value -> PageText in "<dt>\(name)</dt><dd>\(value)</dd>" }
    let others = failure.stores - failure.examples.count
    let names = failure.examples.map { name -> PageText in "<li><code>\(name)</code></li>" }
    let rest: PageText =
      others > 0 ? "<li class=\"sub\">and \(Quantity.grouped(others)) more</li>" : ""
    return """
      <details class="failure \(style)"\(isOpen ? " open" : "" as PageText)><summary><span class="count">\(Quantity.stores(failure.stores))</span>\
      <span class="cause">\(failure.causeText)</span><span class="code">\(error.code.rawValue)</span>\
      <span class="sub">\(solved)</span></summary><div class="columns"><dl>\(facts)</dl><ul>\(names)\(rest)</ul></div></details>

      """
  }

  // MARK: Tables

  private var longestRuns: [RunReport] {
    Array(
      runs.filter { $0.result == .migrated }
        .sorted { $0.durationMicroseconds > $1.durationMicroseconds }.prefix(10))
  }

  private func runsCard(_ title: String, _ runs: [RunReport]) -> PageText {
    guard !runs.isEmpty else { return "" }
    let rows = runs.map { run -> PageText in
      let series = Plot.Series(run.result)
      let versions = [run.from, run.to].compactMap { $0?.description }.joined(separator: " → ")
      return """
        <tr><td class="time">\(Quantity.time(secondsSince1970: run.startedAt))</td>\
        <td><span class="key"><i class="\(series.pageClass)"></i>\(run.result.rawValue)</span></td>\
        <td class="path"><code>\(run.store)</code></td><td>\(versions)</td>\
        <td class="number">\(run.bytes.map { Quantity.bytes($0) } ?? "")</td>\
        <td class="number">\(Quantity.duration(microseconds: run.durationMicroseconds))</td></tr>

        """
    }
    return """
      <section class="card wide"><div class="head"><h2>\(title)</h2></div><div class="scroll"><table>\
      <thead><tr><th>started</th><th>result</th><th>store</th><th>versions</th><th class="number">size</th>\
      <th class="number">took</th></tr></thead><tbody>\(rows)</tbody></table></div></section>

      """
  }
}
