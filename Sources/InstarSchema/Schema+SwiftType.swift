extension Schema {
  /// A Swift type behind a property. Counts for nothing when properties are compared, and does not travel.
  package struct SwiftType: @unchecked Sendable, Hashable {
    // Metatypes are immutable; they are only not marked Sendable.
    package let type: (any Any.Type)?
    /// Whether the property may have no value.
    package let isOptional: Bool

    package init(_ type: (any Any.Type)?, isOptional: Bool = true) {
      self.type = type
      self.isOptional = isOptional
    }

    package static func == (left: SwiftType, right: SwiftType) -> Bool { true }
    package func hash(into hasher: inout Hasher) {}
  }
}
