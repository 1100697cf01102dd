import Instar

/// One property of each type of the API page, with its optional form and an array of it.
@Model
final class EveryType {
  enum Level: Int, Codable { case low = 1, high = 2 }
  enum Shape: Codable { case round, square }
  enum Source: Codable, Equatable {
    case unknown
    case person(name: String, age: Int)
  }
  struct Point: Codable, Equatable {
    var x: Double
    var y: Double
    var label: String?
    var tags: [String] = []
  }
  struct Code: RawRepresentable, Codable, Equatable {
    var rawValue: String
  }

  var string: String = ""
  var stringOrNil: String?
  var strings: [String] = []
  var bool: Bool = false
  var boolOrNil: Bool?
  var bools: [Bool] = []
  var int: Int = 0
  var intOrNil: Int?
  var ints: [Int] = []
  var int8: Int8 = 0
  var int8OrNil: Int8?
  var int8s: [Int8] = []
  var int16: Int16 = 0
  var int16OrNil: Int16?
  var int16s: [Int16] = []
  var int32: Int32 = 0
  var int32OrNil: Int32?
  var int32s: [Int32] = []
  var int64: Int64 = 0
  var int64OrNil: Int64?
  var int64s: [Int64] = []
  var uint: UInt = 0
  var uintOrNil: UInt?
  var uints: [UInt] = []
  var uint8: UInt8 = 0
  var uint8OrNil: UInt8?
  var uint8s: [UInt8] = []
  var uint16: UInt16 = 0
  var uint16OrNil: UInt16?
  var uint16s: [UInt16] = []
  var uint32: UInt32 = 0
  var uint32OrNil: UInt32?
  var uint32s: [UInt32] = []
  var uint64: UInt64 = 0
  var uint64OrNil: UInt64?
  var uint64s: [UInt64] = []
  var double: Double = 0
  var doubleOrNil: Double?
  var doubles: [Double] = []
  var float: Float = 0
  var floatOrNil: Float?
  var floats: [Float] = []
  var decimal: Decimal = 0
  var decimalOrNil: Decimal?
  var decimals: [Decimal] = []
  var date: Date = Date.distantPast
  var dateOrNil: Date?
  var dates: [Date] = []
  var uuid: UUID = UUID()
  var uuidOrNil: UUID?
  var uuids: [UUID] = []
  var url: URL = URL(filePath: "/")
  var urlOrNil: URL?
  var urls: [URL] = []
  var data: Data = Data()
  var dataOrNil: Data?
  var datas: [Data] = []
  var level: Level = Level.low
  var levelOrNil: Level?
  var levels: [Level] = []
  var code: Code = Code(rawValue: "")
  var codeOrNil: Code?
  var codes: [Code] = []
  var shape: Shape = Shape.round
  var shapeOrNil: Shape?
  var shapes: [Shape] = []
  var source: Source = Source.unknown
  var sourceOrNil: Source?
  var sources: [Source] = []
  var point: Point = Point(x: 0, y: 0)
  var pointOrNil: Point?
  var points: [Point] = []
  var pointsOrNil: [Point]?
  var text: AttributedString = AttributedString("")
  var textOrNil: AttributedString?
  var texts: [AttributedString] = []

  init() {}
}
