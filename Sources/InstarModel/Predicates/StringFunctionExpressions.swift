public import Foundation

// Localized comparisons of text. Foundation supports them in `#Predicate` on Apple's platforms only. On Linux its macro
// expands to calls of these functions.

#if !canImport(Darwin)
  /// A function of two texts that predicates can call.
  public protocol StringFunction: SendableMetatype {
    associatedtype Output
    /// The name of the same function in SQL.
    static var sqlName: String { get }
    /// Returns what Foundation's method of that name returns.
    static func apply(_ text: some StringProtocol, _ other: some StringProtocol) -> Output
  }

  extension PredicateExpressions {
    /// `text.localizedStandardContains(other)`: without regard to case and diacritics.
    public enum LocalizedStandardContains: StringFunction {
      /// A function that `PredicateFunctions` adds to each connection.
      public static var sqlName: String { PredicateFunctions.localizedContains }
      /// Whether the first text contains the other, without regard to case and diacritics.
      public static func apply(_ text: some StringProtocol, _ other: some StringProtocol) -> Bool {
        text.localizedStandardContains(other)
      }
    }

    /// `text.localizedCompare(other)`.
    public enum LocalizedCompare: StringFunction {
      /// A function that `PredicateFunctions` adds to each connection.
      public static var sqlName: String { PredicateFunctions.localizedCompare }
      /// How the texts compare by the rules of the current locale.
      public static func apply(
        _ text: some StringProtocol, _ other: some StringProtocol
      ) -> ComparisonResult { text.localizedCompare(other) }
    }

    /// `text.caseInsensitiveCompare(other)`.
    public enum CaseInsensitiveCompare: StringFunction {
      /// A function that `PredicateFunctions` adds to each connection.
      public static var sqlName: String { PredicateFunctions.caseInsensitiveCompare }
      /// How the texts compare without regard to case.
      public static func apply(
        _ text: some StringProtocol, _ other: some StringProtocol
      ) -> ComparisonResult { text.caseInsensitiveCompare(other) }
    }

    /// A call of a function of two texts.
    public struct StringFunctionCall<
      Function: StringFunction, Root: PredicateExpression, Other: PredicateExpression
    >: PredicateExpression where Root.Output: StringProtocol, Other.Output: StringProtocol {
      let root: Root
      let other: Other

      /// Calls Foundation's function with both texts, for models in memory.
      public func evaluate(_ bindings: PredicateBindings) throws -> Function.Output {
        try Function.apply(root.evaluate(bindings), other.evaluate(bindings))
      }
    }

    /// The form of `localizedStandardContains(_:)` that Foundation's macro writes.
    public static func build_localizedStandardContains<Root, Other>(
      _ root: Root, _ other: Other
    ) -> StringFunctionCall<LocalizedStandardContains, Root, Other> {
      StringFunctionCall(root: root, other: other)
    }

    /// The form of `localizedCompare(_:)` that Foundation's macro writes.
    public static func build_localizedCompare<Root, Other>(
      _ root: Root, _ other: Other
    ) -> StringFunctionCall<LocalizedCompare, Root, Other> {
      StringFunctionCall(root: root, other: other)
    }

    /// The form of `caseInsensitiveCompare(_:)` that Foundation's macro writes.
    public static func build_caseInsensitiveCompare<Root, Other>(
      _ root: Root, _ other: Other
    ) -> StringFunctionCall<CaseInsensitiveCompare, Root, Other> {
      StringFunctionCall(root: root, other: other)
    }
  }

  extension PredicateExpressions.StringFunctionCall: Sendable
  where Root: Sendable, Other: Sendable {}
  extension PredicateExpressions.StringFunctionCall: Codable where Root: Codable, Other: Codable {}
  extension PredicateExpressions.StringFunctionCall: StandardPredicateExpression
  where Root: StandardPredicateExpression, Other: StandardPredicateExpression {}
#endif
