// swift-format-ignore-file
//
//  Dogs.swift
//  The models of both versions, in extensions of their schemas
//

import Foundation
import Instar

public struct KennelWeight: Codable, Hashable, Sendable {
    public var value: Double
    public var unit: String
}

public enum KennelOrigin: Codable, Equatable, Sendable {
    case born(at: URL), found(place: String, year: Int?), unknown
}

public struct KennelRecord: Codable, Sendable {
    struct Training: Codable { var hours: [Int] = [] }
    var trainings: [String: Training] = [:]
    var absence: DateInterval?
}

extension KennelV1 {
    @Model
    public class Dog {
        @Model
        public class Stay {
            var from: Date
            var nights: Int
            var dog: Dog?
            init(from: Date, nights: Int, dog: Dog? = nil) {
                self.from = from
                self.nights = nights
                self.dog = dog
            }
        }

        #Index<Dog>([\.title], [\.title, \.chip])

        @Attribute(.unique) public private(set) var chip: String
        var title: String
        @Attribute(.externalStorage) var scan: Data?
        var fee: Decimal
        var weight: KennelWeight
        var origin: KennelOrigin?
        var walks: [String: [Int]] = [:]
        var record: KennelRecord
        var ages: ClosedRange<Int>?
        var dam: Dog?
        @Relationship(deleteRule: .nullify, inverse: \Dog.dam) var puppies: [Dog]?
        @Relationship(deleteRule: .cascade, inverse: \Stay.dog) var stays: [Stay]
        @Relationship(inverse: \Owner.dogs) var owners: [Owner]? = []

        public init(chip: String, title: String, fee: Decimal, weight: Double) {
            self.chip = chip
            self.title = title
            self.fee = fee
            self.weight = KennelWeight(value: weight, unit: "kg")
            self.record = KennelRecord()
            self.stays = []
        }
    }

    @Model
    public final class Owner {
        var name = ""
        var dogs: [Dog]?
        init(name: String) { self.name = name }
    }
}

extension KennelV2 {
    @Model
    public class Dog {
        #Index<Dog>([\.name], [\.name, \.chip])

        @Attribute(.unique) public private(set) var chip: String
        @Attribute(originalName: "title") var name: String
        @Attribute(.externalStorage, originalName: "scan") var picture: Data?
        var fee: Decimal
        var weight: KennelWeight
        var origin: KennelOrigin?
        var walks: [String: [Int]] = [:]
        var record: KennelRecord
        var ages: ClosedRange<Int>?
        var lastStay: Date?
        var dam: Dog?
        @Relationship(deleteRule: .nullify, inverse: \Dog.dam) var puppies: [Dog]?
        @Relationship(inverse: \Owner.dogs) var owners: [Owner]? = []

        init(chip: String, name: String) {
            self.chip = chip
            self.name = name
            self.fee = 0
            self.weight = KennelWeight(value: 0, unit: "kg")
            self.record = KennelRecord()
        }
    }

    @available(iOS 26, macOS 26, *)
    @Model
    final class GuideDog: KennelV2.Dog {
        enum School: String, Codable { case city, country }
        var school: School
        init(chip: String, name: String, school: School) {
            self.school = school
            super.init(chip: chip, name: name)
        }
    }

    @Model
    public final class Owner {
        var name = ""
        var dogs: [Dog]?
        init(name: String) { self.name = name }
    }

    @Model
    final class Invoice {
        @Model
        final class Line {
            var nights: Int
            var invoice: Invoice?
            init(nights: Int) { self.nights = nights }
        }

        var chip: String
        @Relationship(deleteRule: .cascade, inverse: \Line.invoice) var lines: [Line]
        var nights: Int { lines.reduce(0) { $0 + $1.nights } }

        init(chip: String, lines: [Line]) {
            self.chip = chip
            self.lines = lines
        }
    }
}
