import Foundation
import InstarWire

/// A picture of numbers in a page, as SVG: an area with two axes, and what is drawn into it.
struct Plot {
  /// What an axis shows: a range of values, on a linear or a logarithmic scale, and the values with a label.
  struct Axis {
    var range: ClosedRange<Double>
    var isLogarithmic = false
    var labels: [(value: Double, text: String)]

    /// Where a value is, from 0 at the begin of the axis to 1 at its end.
    func place(_ value: Double) -> Double {
      func scaled(_ value: Double) -> Double { isLogarithmic ? log10(max(value, 1e-9)) : value }
      let (first, last) = (scaled(range.lowerBound), scaled(range.upperBound))
      guard last > first else { return 0 }
      return min(1, max(0, (scaled(value) - first) / (last - first)))
    }

    /// From 0 to at least `most`, with whole numbers.
    static func counts(upTo most: Int) -> Axis {
      let step = niceStep(Double(max(most, 1)) / 4)
      let end = max(1, (Double(max(most, 1)) / step).rounded(.up)) * step
      return Axis(
        range: 0...end,
        labels: stride(from: 0, through: end, by: step).map { ($0, Quantity.grouped(Int($0))) })
    }

    /// Times in seconds since 1970.
    static func times(_ range: ClosedRange<Double>) -> Axis {
      let span = max(range.upperBound - range.lowerBound, 1)
      let step = Self.timeSteps.first { span / $0 <= 6 } ?? 365 * 86_400
      let first = (range.lowerBound / step).rounded(.up) * step
      let labels = stride(from: first, through: range.upperBound, by: step).map {
        ($0, timeText($0, step: step))
      }
      return Axis(range: range.lowerBound...(range.lowerBound + span), labels: labels)
    }

    /// Powers of `base`, from the one below the least value to the one above the greatest.
    static func powers(
      of base: Double, around values: [Double], text: (Double) -> String
    ) -> Axis {
      let least = max(values.min() ?? 1, 1e-6)
      let most = max(values.max() ?? 1, least)
      // With room on both sides of values that are much the same.
      let isNarrow = most < least * base
      let first = (log(least) / log(base)).rounded(.down) - (isNarrow ? 1 : 0)
      let last = max(first + 1, (log(most) / log(base)).rounded(.up)) + (isNarrow ? 1 : 0)
      let every = max(1, ((last - first) / 6).rounded(.up))
      return Axis(
        range: pow(base, first)...pow(base, last), isLogarithmic: true,
        labels: stride(from: first, through: last, by: every).map {
          (pow(base, $0), text(pow(base, $0)))
        })
    }

    private static let timeSteps: [Double] = [
      1, 5, 15, 60, 300, 900, 3600, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 1_209_600,
      2_592_000, 7_776_000,
    ]

    /// 1, 2 or 5 times a power of ten, and at least 1.
    private static func niceStep(_ value: Double) -> Double {
      guard value > 1 else { return 1 }
      let power = pow(10, log10(value).rounded(.down))
      return ([1, 2, 5, 10].first { $0 * power >= value } ?? 10) * power
    }

    private static func timeText(_ seconds: Double, step: Double) -> String {
      // "2026-11-21 10:15:30 UTC"
      let text = Array(Quantity.time(secondsSince1970: seconds))
      guard text.count >= 19 else { return String(text) }
      if step < 60 { return String(text[11..<19]) }
      if step < 86_400 {
        let time = String(text[11..<16])
        return time == "00:00" ? String(text[5..<10]) : time
      }
      return String(text[step < 7_776_000 ? 5..<10 : 0..<7])
    }
  }

  var x: Axis
  var y: Axis
  var width = 640.0
  var height = 230.0

  private static let left = 46.0
  private static let right = 14.0
  private static let top = 12.0
  private static let bottom = 26.0

  func px(_ value: Double) -> Double {
    Self.left + x.place(value) * (width - Self.left - Self.right)
  }
  func py(_ value: Double) -> Double {
    height - Self.bottom - y.place(value) * (height - Self.top - Self.bottom)
  }
  private var floor: Double { height - Self.bottom }

  /// The whole picture.
  ///
  /// - Parameter label: What it shows, for those who do not see it.
  func svg(_ label: String, _ drawn: [PageText]) -> PageText {
    """
    <svg class="plot" role="img" aria-label="\(label)" viewBox="0 0 \(at: width) \(at: height)">\(frame)\(drawn)</svg>

    """
  }

  private var frame: PageText {
    let rows = y.labels.map { label -> PageText in
      """
      <line class="grid" x1="\(at: Self.left)" x2="\(at: width - Self.right)" y1="\(at: py(label.value))" y2="\(at: py(label.value))"/>\
      <text class="tick" text-anchor="end" x="\(at: Self.left - 7)" y="\(at: py(label.value) + 3.5)">\(label.text)</text>
      """
    }
    let columns = x.labels.map { label -> PageText in
      let place = px(label.value)
      let anchor: PageText =
        place > width - 36 ? "end" : place < Self.left + 18 ? "start" : "middle"
      return """
        <text class="tick" text-anchor="\(anchor)" x="\(at: min(place, width - 4))" y="\(at: height - 8)">\(label.text)</text>
        """
    }
    return "\(rows)\(columns)"
  }

  /// A bar from one value of the x axis to another, with one part on the other for each class.
  ///
  /// - Parameter title: What a pointer over a part shows.
  func bar(
    from start: Double, to end: Double, parts: [(style: Series, count: Double)],
    title: (Series, Double) -> String
  ) -> PageText {
    // Neighbours of one colour are one part.
    var merged: [(style: Series, count: Double)] = []
    for part in parts where part.count > 0 {
      if merged.last?.style == part.style {
        merged[merged.count - 1].count += part.count
      } else {
        merged.append(part)
      }
    }
    var drawn: PageText = ""
    var base = 0.0
    let gap = min(1.5, (px(end) - px(start)) / 8)
    for part in merged {
      let (low, high) = (py(base), py(base + part.count))
      drawn += """
        <rect class="\(part.style.pageClass)" x="\(at: px(start) + gap)" y="\(at: high)" \
        width="\(at: max(0.8, px(end) - px(start) - 2 * gap))" height="\(at: max(0.6, low - high))">\
        <title>\(title(part.style, part.count))</title></rect>
        """
      base += part.count
    }
    return drawn
  }

  /// A line that keeps each value until the next one.
  func steps(_ points: [(x: Double, y: Double)], _ style: Series, isFilled: Bool) -> PageText {
    guard let first = points.first, let last = points.last else { return "" }
    var path: PageText = "M\(at: px(first.x)) \(at: py(first.y))"
    for point in points.dropFirst() { path += "H\(at: px(point.x))V\(at: py(point.y))" }
    let line: PageText = "<path class=\"line \(style.pageClass)\" d=\"\(path)\"/>"
    guard isFilled else { return line }
    return """
      <path class="area \(style.pageClass)" d="\(path)H\(at: px(last.x))V\(at: floor)H\(at: px(first.x))Z"/>\(line)
      """
  }

  func dot(_ x: Double, _ y: Double, radius: Double, _ style: Series, title: String) -> PageText {
    """
    <circle class="\(style.pageClass) dot" cx="\(at: px(x))" cy="\(at: py(y))" r="\(at: radius)"><title>\(title)</title></circle>
    """
  }

  /// A vertical line with a word at its top, lower for each further one that would cover another.
  func mark(_ value: Double, _ text: String, row: Int = 0) -> PageText {
    let place = px(value)
    let isAtEnd = place > width - 90
    return """
      <line class="mark" x1="\(at: place)" x2="\(at: place)" y1="\(at: Self.top - 4)" y2="\(at: floor)"/>\
      <text class="note" text-anchor="\(isAtEnd ? "end" : "start")" x="\(at: place + (isAtEnd ? -4 : 4))" \
      y="\(at: Self.top + 5 + 13 * Double(row))">\(text)</text>
      """
  }
}

extension Plot {
  /// What is drawn in one colour.
  enum Series: String {
    case good, warning, bad, busy, other

    init(_ result: RunReport.Result) {
      switch result {
      case .migrated: self = .good
      case .failed: self = .bad
      case .refused: self = .warning
      case .busy: self = .busy
      case .restored, .rehearsed, .current: self = .other
      }
    }

    var pageClass: PageText { PageText(rawValue) }
  }
}
