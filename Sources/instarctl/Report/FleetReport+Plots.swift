import Foundation
import InstarSchema
import InstarWire

/// The plots of the page. Each has a bounded number of shapes, however many runs there are.
extension FleetReport {
  private static let linePoints = 240
  private static let bars = 60

  private var migrations: [RunReport] { runs.filter { $0.result == .migrated } }

  /// A duration on an axis: "100 ms", "10 s", "100 s", "17 min".
  private static func axisText(_ seconds: Double) -> String {
    if seconds < 1 { return "\(Int((seconds * 1000).rounded())) ms" }
    if seconds < 600 { return "\(Int(seconds.rounded())) s" }
    return seconds < 36_000
      ? "\(Int((seconds / 60).rounded())) min" : "\(Int((seconds / 3600).rounded())) h"
  }

  /// How many stores of a plan were migrated and failed until each moment, with the waves of its rollout.
  func progressPlot(of plan: Plan) -> PageText? {
    let ofPlan = runs.filter { $0.plan == plan.plan }
      .sorted { $0.startedAt + $0.seconds < $1.startedAt + $1.seconds }
    let start = plan.rollout?.began ?? ofPlan.map(\.startedAt).min()
    guard let start, let last = ofPlan.last?.startedAt, last >= start else { return nil }
    var migrated: Set<String> = []
    var failed: Set<String> = []
    var points: [(at: Double, migrated: Int, failed: Int)] = [(start, 0, 0)]
    for run in ofPlan where run.startedAt >= start {
      switch run.result {
      case .migrated:
        migrated.insert(run.store)
        failed.remove(run.store)
      case .failed, .refused:
        failed.insert(run.store)
        migrated.remove(run.store)
      case .restored: migrated.remove(run.store)
      case .busy, .current, .rehearsed: continue
      }
      points.append((run.startedAt + run.seconds, migrated.count, failed.count))
    }
    guard points.count > 1 else { return nil }
    let end = max(points.map(\.at).max() ?? last, start + 1)
    let all = max(plan.progress?.stores ?? 0, points.map { $0.migrated + $0.failed }.max() ?? 0)
    let plot = Plot(x: .times(start...end), y: .counts(upTo: all))
    let shown = Self.thinned(points)
    var drawn = [
      plot.steps(shown.map { ($0.at, Double($0.migrated)) }, .good, isFilled: true),
      plot.steps(shown.map { ($0.at, Double($0.failed)) }, .bad, isFilled: false),
    ]
    var rightmost = -Double.infinity
    var row = 0
    let openings = plan.rollout?.openings ?? []
    for (index, time) in openings.enumerated() where time >= start {
      // A wave without stores of its own has no run.
      let next = index + 1 < openings.count ? openings[index + 1] : .infinity
      guard ofPlan.contains(where: { $0.startedAt >= time && $0.startedAt < next }) else {
        continue
      }
      row = plot.px(time) - rightmost < 52 ? (row + 1) % 4 : 0
      rightmost = plot.px(time)
      drawn.append(plot.mark(time, "wave \(index + 1)", row: row))
    }
    return plot.svg(
      "\(plan.plan): \(migrated.count) stores migrated and \(failed.count) failed until the end",
      drawn)
  }

  private static func thinned<Point>(_ points: [Point]) -> [Point] {
    guard points.count > linePoints else { return points }
    let every = Double(points.count - 1) / Double(linePoints - 1)
    return (0..<linePoints).map { points[Int((Double($0) * every).rounded())] }
  }

  /// Runs in each span of time, by result.
  func runsPlot(width: Double) -> PageText? {
    guard let first = totals.firstAt, let last = totals.lastAt else { return nil }
    let steps: [Double] = [
      1, 5, 15, 60, 300, 900, 3600, 10_800, 21_600, 43_200, 86_400, 604_800, 2_592_000,
    ]
    let step = steps.first { (last - first) / $0 < Double(Self.bars) } ?? (last - first) / 59
    let start = (first / step).rounded(.down) * step
    var bars: [Int: [RunReport.Result: Int]] = [:]
    for run in runs {
      bars[Int((run.startedAt - start) / step), default: [:]][run.result, default: 0] += 1
    }
    let most = bars.values.map { $0.values.reduce(0, +) }.max() ?? 0
    let count = (bars.keys.max() ?? 0) + 1
    let plot = Plot(
      x: .times(start...(start + Double(max(count, 6)) * step)), y: .counts(upTo: most),
      width: width)
    let order: [RunReport.Result] = [
      .migrated, .restored, .rehearsed, .current, .busy, .refused, .failed,
    ]
    return plot.svg(
      "Runs by result",
      bars.sorted { $0.key < $1.key }.map { index, counts in
        let from = start + Double(index) * step
        let when = Quantity.time(secondsSince1970: from)
        let parts = order.map { (Plot.Series($0), Double(counts[$0] ?? 0)) }
        return plot.bar(from: from, to: from + step, parts: parts) { series, number in
          "\(Quantity.runs(Int(number))) \(Self.words(series, counts)), \(when)"
        }
      })
  }

  private static func words(_ series: Plot.Series, _ counts: [RunReport.Result: Int]) -> String {
    let results = RunReport.Result.allCases.filter {
      Plot.Series($0) == series && (counts[$0] ?? 0) > 0
    }
    return results.map(\.rawValue).joined(separator: " or ")
  }

  func durationPlot() -> PageText? {
    histogram(
      migrations.map { max($0.seconds, 0.001) }, base: 10, perPower: 6, durations,
      label: "Durations of migrations", axisText: Self.axisText, text: Self.duration)
  }

  func sizePlot() -> PageText? {
    histogram(
      migrations.compactMap { $0.bytes.map { max(Double($0), 1024) } }, base: 4, perPower: 2, sizes,
      label: "Sizes of migrated stores", axisText: { Quantity.bytes(Int64($0)) },
      text: { Quantity.bytes(Int64($0)) })
  }

  private func histogram(
    _ values: [Double], base: Double, perPower: Double, _ spread: Spread?, label: String,
    axisText: (Double) -> String, text: (Double) -> String
  ) -> PageText? {
    guard let spread else { return nil }
    let axis = Plot.Axis.powers(of: base, around: values, text: axisText)
    let width = log(base) / perPower
    let start = log(axis.range.lowerBound)
    let bars = Dictionary(grouping: values) { Int(((log($0) - start) / width).rounded(.down)) }
      .mapValues(\.count)
    let plot = Plot(x: axis, y: .counts(upTo: bars.values.max() ?? 0))
    let drawn = bars.sorted { $0.key < $1.key }.map { index, count in
      let from = exp(start + Double(index) * width)
      let to = exp(start + Double(index + 1) * width)
      return plot.bar(from: from, to: to, parts: [(.good, Double(count))]) { _, _ in
        "\(Quantity.runs(count)): \(text(from)) to \(text(to))"
      }
    }
    var marks: [PageText] = []
    for (share, value) in [
      ("median", spread.median), ("90 %", spread.ninetyPercent), ("99 %", spread.ninetyNinePercent),
    ] where marks.isEmpty || text(value) != text(spread.median) {
      marks.append(plot.mark(value, "\(share): \(text(value))", row: marks.count))
    }
    return plot.svg("\(label): median \(text(spread.median))", drawn + marks)
  }

  /// The duration of migrations by the size of their stores: one dot for all in the same place.
  func durationBySizePlot() -> PageText? {
    let measured = migrations.compactMap { run in
      run.bytes.map { (size: max(Double($0), 1024), seconds: max(run.seconds, 0.001)) }
    }
    guard !measured.isEmpty else { return nil }
    var plot = Plot(
      x: .powers(of: 4, around: measured.map(\.size)) { Quantity.bytes(Int64($0)) },
      y: .powers(of: 10, around: measured.map(\.seconds), text: Self.axisText))
    plot.height = 260
    struct Place: Hashable {
      var column: Int
      var row: Int
    }
    let places = Dictionary(grouping: measured) {
      Place(column: Int(plot.x.place($0.size) * 40), row: Int(plot.y.place($0.seconds) * 20))
    }
    let most = Double(places.values.map(\.count).max() ?? 1)
    let drawn = places.sorted { ($0.key.column, $0.key.row) < ($1.key.column, $1.key.row) }.map {
      _, runs in
      let size = runs.map(\.size).reduce(0, +) / Double(runs.count)
      let seconds = runs.map(\.seconds).reduce(0, +) / Double(runs.count)
      return plot.dot(
        size, seconds, radius: 2.2 + 7 * (Double(runs.count) / most).squareRoot(), .other,
        title:
          "\(Quantity.runs(runs.count)): \(Quantity.bytes(Int64(size))) in \(Self.duration(seconds))"
      )
    }
    return plot.svg("Duration of migrations by the size of the store", drawn)
  }
}
