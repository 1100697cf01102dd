extension Schema {
  /// A Swift type behind a property. Counts for nothing when properties are compared, and does not travel.
  package struct SwiftType: @unchecked Sendable, Hashable {
    // Metatypes are immutable; they are only not marked Sendable.
    package let type: (any Any.Type)?

    package init(_ type: (any Any.Type)?) { self.type = type }

    package static func == (left: SwiftType, right: SwiftType) -> Bool { true }
    package func hash(into hasher: inout Hasher) {}
  }
}
