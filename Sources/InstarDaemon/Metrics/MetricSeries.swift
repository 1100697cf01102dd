import CoreMetrics
import Synchronization

/// The value of one metric with one set of labels. Any thread may change and read it.
final class MetricSeries: CounterHandler, FloatingPointCounterHandler, MeterHandler,
  RecorderHandler, TimerHandler
{
  /// What was measured until now.
  struct Values: Sendable {
    /// The value of a counter or a gauge; of a histogram, the sum of all values.
    var sum = 0.0
    /// How many values a histogram has.
    var count = 0
    /// How many of them are in each bucket and in no lower one.
    var buckets: [Int]
  }

  private let bounds: [Double]
  private let state: Mutex<Values>

  /// - Parameter bounds: The upper bounds of a histogram's buckets.
  init(bounds: [Double]) {
    self.bounds = bounds
    state = Mutex(Values(buckets: [Int](repeating: 0, count: bounds.count)))
  }

  var values: Values { state.withLock { $0 } }

  func increment(by amount: Int64) { increment(by: Double(amount)) }
  func increment(by amount: Double) { state.withLock { $0.sum += amount } }
  func decrement(by amount: Double) { increment(by: -amount) }
  func reset() { set(0.0) }

  func set(_ value: Int64) { set(Double(value)) }
  func set(_ value: Double) { state.withLock { $0.sum = value } }

  func record(_ value: Int64) { record(Double(value)) }

  func record(_ value: Double) {
    state.withLock { values in
      values.sum += value
      values.count += 1
      if let place = bounds.firstIndex(where: { value <= $0 }) { values.buckets[place] += 1 }
    }
  }

  /// Prometheus' unit of time is the second.
  func recordNanoseconds(_ duration: Int64) { record(Double(duration) / 1e9) }
}
