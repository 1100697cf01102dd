import Instar
import Testing

/// Types of Foundation that no row of the API page names, and models have all the same.
@Suite("Property types of Foundation")
struct FoundationTypeTests {
  @Model
  final class Frame {
    var width: CGFloat = 1
    var height: CGFloat?
    var origin: CGPoint = CGPoint.zero
    var bounds: CGRect?
    var zone: TimeZone?
    var locale: Locale?
    var due: DateComponents?
    var range: ClosedRange<Int> = 0...1
    var pages: IndexSet?
    var author: PersonNameComponents?
    var interval: DateInterval?
    var other: PersistentIdentifier?
    var names: [String: [String]] = [:]
    @Attribute(.codable) var length: Measurement<UnitLength>?
    init() {}
  }

  @Model
  final class Ruler {
    var length: Measurement<UnitLength>?
    init() {}
  }

  private let container: ModelContainer
  private let context: ModelContext

  init() throws {
    container = try ModelContainer(
      for: Frame.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
    context = ModelContext(container)
  }

  @Test("values of Foundation's types are kept as they are")
  func kept() throws {
    let frame = Frame()
    (frame.width, frame.height) = (2.5, 0.1)
    frame.origin = CGPoint(x: 1, y: -2)
    frame.bounds = CGRect(x: 1, y: 2, width: 3, height: 4)
    (frame.zone, frame.locale) = (TimeZone(identifier: "Europe/Rome"), Locale(identifier: "da_DK"))
    frame.due = DateComponents(year: 2020, month: 2)
    (frame.range, frame.pages) = (2...9, [1, 4])
    frame.author = PersonNameComponents(givenName: "Ada", familyName: "King")
    frame.interval = DateInterval(start: .distantPast, duration: 5)
    frame.names = ["a": ["b"]]
    frame.length = Measurement(value: 3, unit: .meters)
    context.insert(frame)
    try context.save()
    frame.other = frame.persistentModelID
    try context.save()
    let other = ModelContext(container)
    let found = try #require(try other.fetch(FetchDescriptor<Frame>()).first)
    #expect(found.width == 2.5 && found.height == 0.1 && found.origin == frame.origin)
    #expect(found.bounds == frame.bounds && found.zone == frame.zone)
    #expect(found.locale == frame.locale && found.due == frame.due && found.range == frame.range)
    #expect(found.pages == frame.pages && found.author == frame.author)
    #expect(found.interval == frame.interval && found.names == frame.names)
    #expect(found.length == frame.length && found.other == frame.persistentModelID)
  }

  @Test("a CGFloat is a number in the store and in predicates")
  func numbers() throws {
    let schema = Schema(Frame.self)
    #expect(schema.entitiesByName["Frame"]?.attributesByName["width"]?.type == .double)
    context.insert(Frame())
    try context.save()
    let wide = #Predicate<Frame> { $0.width * 2 > 1.5 && $0.height == nil }
    #expect(try ModelContext(container).fetchCount(FetchDescriptor(predicate: wide)) == 1)
  }

  @Test("a type that cannot be spread over columns is refused with the option that keeps it whole")
  func refused() throws {
    let problems = Schema(Ruler.self).modelProblems()
    #expect(problems.count == 1)
    #expect(problems.first?.cause.hasPrefix("Ruler.length cannot be stored: ") == true)
    #expect(problems.first?.next?.contains("@Attribute(.codable)") == true)
  }
}
