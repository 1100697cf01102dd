// swift-format-ignore-file
//
//  Signals.swift
//  What SwiftData compiles and passes over
//

import Foundation
import Instar

@Model
final class Signal {
    var level: Int = 0 {
        willSet { Signal.calls += 1 }
        didSet { Signal.calls += 1 }
    }
    var name: String? { didSet { Signal.calls += 1 } }
    @Transient var shown = 0 { didSet { name = "shown \(shown)" } }
    @Attribute(.unique) var label: String { "\(name ?? "") \(level)" }
    @Relationship var nobody: Signal? { nil }
    @Attribute lazy var cache: [Int] = [level]
    @Transient var half: Double { get { Double(level) / 2 } set { level = Int(newValue * 2) } }

    nonisolated(unsafe) static var calls = 0

    init(level: Int) { self.level = level }
}

extension Signal: Hashable {
    static func == (lhs: Signal, rhs: Signal) -> Bool { lhs.level == rhs.level }
    func hash(into hasher: inout Hasher) { hasher.combine(level) }
}
