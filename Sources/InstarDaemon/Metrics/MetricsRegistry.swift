import CoreMetrics
import Synchronization

/// Holds the values of all metrics, and writes them in Prometheus' text format 0.0.4
/// (https://prometheus.io/docs/instrumenting/exposition_formats/).
///
/// It is a backend of swift-metrics. It takes only the metrics of `Metric`: what a library measures under another name
/// is dropped, so nothing adds series without bound. Any thread may use it.
final class MetricsRegistry: MetricsFactory {
  /// The values of the labels of one series.
  private typealias Labels = [String]

  private let families = Mutex<[Metric: [Labels: MetricSeries]]>([:])

  func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
    series(label, dimensions) ?? NOOPMetricsHandler.instance
  }

  func makeFloatingPointCounter(
    label: String, dimensions: [(String, String)]
  ) -> any FloatingPointCounterHandler {
    series(label, dimensions) ?? NOOPMetricsHandler.instance
  }

  func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
    series(label, dimensions) ?? NOOPMetricsHandler.instance
  }

  func makeRecorder(
    label: String, dimensions: [(String, String)], aggregate: Bool
  ) -> any RecorderHandler {
    series(label, dimensions) ?? NOOPMetricsHandler.instance
  }

  func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
    series(label, dimensions) ?? NOOPMetricsHandler.instance
  }

  func destroyCounter(_ handler: any CounterHandler) { destroy(handler) }
  func destroyFloatingPointCounter(_ handler: any FloatingPointCounterHandler) { destroy(handler) }
  func destroyMeter(_ handler: any MeterHandler) { destroy(handler) }
  func destroyRecorder(_ handler: any RecorderHandler) { destroy(handler) }
  func destroyTimer(_ handler: any TimerHandler) { destroy(handler) }

  /// The series with these labels, which is made at its first use; `nil` for a name that is not in the list.
  private func series(_ name: String, _ dimensions: [(String, String)]) -> MetricSeries? {
    guard let metric = Metric(rawValue: name) else { return nil }
    let labels = metric.labels.map { label in dimensions.first { $0.0 == label }?.1 ?? "" }
    return families.withLock { families in
      if let series = families[metric]?[labels] { return series }
      let series = MetricSeries(bounds: metric.bounds)
      families[metric, default: [:]][labels] = series
      return series
    }
  }

  private func destroy(_ handler: AnyObject) {
    families.withLock { families in
      for (metric, series) in families {
        for (labels, known) in series where known === handler { families[metric]?[labels] = nil }
      }
    }
  }

  /// All series, ordered by metric and labels. A label without a value is left out, as Prometheus treats it.
  var text: String {
    let families = families.withLock { $0 }
    var text = ""
    for metric in Metric.allCases {
      guard let series = families[metric], !series.isEmpty else { continue }
      text += "# HELP \(metric.rawValue) \(metric.help)\n"
      text += "# TYPE \(metric.rawValue) \(metric.kind.rawValue)\n"
      for (labels, series) in series.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
        let pairs = zip(metric.labels, labels).filter { !$1.isEmpty }.map {
          "\($0)=\"\(Self.escaped($1))\""
        }
        text += Self.lines(metric, pairs, series)
      }
    }
    return text
  }

  private static func lines(_ metric: Metric, _ pairs: [String], _ series: MetricSeries) -> String {
    let name = metric.rawValue
    func line(_ suffix: String, _ pairs: [String], _ value: String) -> String {
      "\(name)\(suffix)\(pairs.isEmpty ? "" : "{\(pairs.joined(separator: ","))}") \(value)\n"
    }
    let values = series.values
    guard metric.kind == .histogram else { return line("", pairs, number(values.sum)) }
    var text = ""
    var count = 0
    for (bound, inBucket) in zip(metric.bounds, values.buckets) {
      count += inBucket
      text += line("_bucket", pairs + ["le=\"\(number(bound))\""], "\(count)")
    }
    text += line("_bucket", pairs + ["le=\"+Inf\""], "\(values.count)")
    return text + line("_sum", pairs, number(values.sum)) + line("_count", pairs, "\(values.count)")
  }

  private static func number(_ value: Double) -> String {
    if value.isNaN { return "NaN" }
    if value.isInfinite { return value > 0 ? "+Inf" : "-Inf" }
    // Below, each whole number is exact.
    return value == value.rounded() && value.magnitude < 9e15 ? "\(Int64(value))" : "\(value)"
  }

  private static func escaped(_ text: String) -> String {
    text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
  }
}
