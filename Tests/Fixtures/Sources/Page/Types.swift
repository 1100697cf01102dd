// swift-format-ignore-file
import Instar

public enum Priority: Int, Codable, CaseIterable, Sendable {
    case low = 1, normal, high
}

public enum Status: String, Codable, Sendable {
    case open, done
}

/// Without raw value, with values of its own.
public enum Reminder: Codable, Equatable, Sendable {
    case never
    case at(Date)
    case near(place: String, meters: Double)
}

public enum Shape: Codable, Equatable, Sendable {
    case round, square
}

public struct Address: Codable, Equatable, Hashable, Sendable {
    public var street: String
    public var city: String
    public var zip: Int?
}

public struct Color: Codable, Hashable, Sendable {
    public var red = 0.0
    public var green = 0.0
}

/// Anything at all, kept by a transformer.
public final class Drawing: NSObject, Sendable {
    public let strokes: [Int]
    public init(strokes: [Int]) { self.strokes = strokes }
}

public final class DrawingTransformer: ValueTransformer {
    public override func transformedValue(_ value: Any?) -> Any? {
        guard let drawing = value as? Drawing else { return nil }
        return try? JSONEncoder().encode(drawing.strokes)
    }

    public override func reverseTransformedValue(_ value: Any?) -> Any? {
        guard let data = value as? Data, let strokes = try? JSONDecoder().decode([Int].self, from: data) else { return nil }
        return Drawing(strokes: strokes)
    }
}
