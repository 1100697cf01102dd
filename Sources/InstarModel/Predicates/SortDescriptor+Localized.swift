public import Foundation

extension String {
  /// Compares text by the rules of the current locale. Foundation has these comparators in
  /// `String.StandardComparator` on Apple's platforms only; on Linux that has only `lexical`.
  public struct LocalizedComparator: Sendable, Hashable {
    enum Kind: Sendable, Hashable {
      case localized, localizedStandard
    }

    let kind: Kind

    /// By the rules of the current locale: "äb" before "az".
    public static let localized = LocalizedComparator(kind: .localized)
    /// The order of a file manager: by the rules of the current locale, mostly without regard to case, and with
    /// numbers by their values: "file2" before "file10".
    public static let localizedStandard = LocalizedComparator(kind: .localizedStandard)
  }
}

extension SortDescriptor where Compared: PersistentModel {
  /// Sorts models by a text with the rules of a language. SQLite does not know these rules, so Instar sorts in memory.
  ///
  /// ```swift
  /// FetchDescriptor<Note>(sortBy: [SortDescriptor(\.title, comparator: .localizedStandard)])
  /// ```
  public init(
    _ keyPath: any KeyPath<Compared, String> & Sendable, comparator: String.LocalizedComparator,
    order: SortOrder = .forward
  ) {
    self.init(
      \Compared.[localized: LocalizedPath(keyPath: keyPath, kind: comparator.kind)], order: order)
  }

  /// Sorts models by an optional text. Models without a text come first.
  public init(
    _ keyPath: any KeyPath<Compared, String?> & Sendable, comparator: String.LocalizedComparator,
    order: SortOrder = .forward
  ) {
    self.init(
      \Compared.[localized: LocalizedPath(keyPath: keyPath, kind: comparator.kind)], order: order)
  }
}

extension PersistentModel {
  fileprivate subscript(localized path: LocalizedPath<Self, String>) -> LocalizedText {
    LocalizedText(text: self[keyPath: path.keyPath], kind: path.kind)
  }

  fileprivate subscript(localized path: LocalizedPath<Self, String?>) -> LocalizedText {
    LocalizedText(text: self[keyPath: path.keyPath], kind: path.kind)
  }
}

/// A property and its comparator. As the argument of a key path it gives a sort descriptor an order of its own.
private struct LocalizedPath<Model, Text>: Hashable, Sendable {
  let keyPath: any KeyPath<Model, Text> & Sendable
  let kind: String.LocalizedComparator.Kind

  static func == (left: LocalizedPath, right: LocalizedPath) -> Bool {
    left.keyPath == right.keyPath && left.kind == right.kind
  }

  func hash(into hasher: inout Hasher) {
    hasher.combine(keyPath)
    hasher.combine(kind)
  }
}

private struct LocalizedText: Comparable {
  let text: String?
  let kind: String.LocalizedComparator.Kind

  private func comparison(with other: LocalizedText) -> ComparisonResult {
    guard let text, let other = other.text else {
      if text == other.text { return .orderedSame }
      return text == nil ? .orderedAscending : .orderedDescending
    }
    return switch kind {
    case .localized: text.localizedCompare(other)
    case .localizedStandard: text.localizedStandardCompare(other)
    }
  }

  static func < (left: LocalizedText, right: LocalizedText) -> Bool {
    left.comparison(with: right) == .orderedAscending
  }

  static func == (left: LocalizedText, right: LocalizedText) -> Bool {
    left.comparison(with: right) == .orderedSame
  }
}
