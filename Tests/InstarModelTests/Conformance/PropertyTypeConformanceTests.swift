import Instar
import Testing

@Suite("API page: plain property types")
struct PropertyTypeConformanceTests {
  private let container: ModelContainer

  init() throws {
    container = try ModelContainer(
      for: EveryType.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
  }

  /// Saves values in a property, its optional form and its array form, reads them from the store, and takes the
  /// optional one away again.
  private func expectKept<Value: Equatable>(
    _ values: [Value], _ one: ReferenceWritableKeyPath<EveryType, Value>,
    _ optional: ReferenceWritableKeyPath<EveryType, Value?>,
    _ array: ReferenceWritableKeyPath<EveryType, [Value]>,
    location: SourceLocation = #_sourceLocation
  ) throws {
    for value in values {
      let context = ModelContext(container)
      let model = EveryType()
      #expect(model[keyPath: optional] == nil, sourceLocation: location)
      #expect(model[keyPath: array].isEmpty, sourceLocation: location)
      model[keyPath: one] = value
      model[keyPath: optional] = value
      model[keyPath: array] = values
      context.insert(model)
      try context.save()

      let other = ModelContext(container)
      let found = try #require(try other.fetch(FetchDescriptor<EveryType>()).first)
      #expect(found[keyPath: one] == value, sourceLocation: location)
      #expect(found[keyPath: optional] == value, sourceLocation: location)
      #expect(found[keyPath: array] == values, sourceLocation: location)
      found[keyPath: optional] = nil
      found[keyPath: array] = []
      try other.save()

      let third = ModelContext(container)
      let again = try #require(try third.fetch(FetchDescriptor<EveryType>()).first)
      #expect(again[keyPath: optional] == nil, sourceLocation: location)
      #expect(again[keyPath: array].isEmpty, sourceLocation: location)
      third.delete(again)
      try third.save()
    }
  }

  @Test("String properties keep their values")
  func strings() throws {
    try expectKept(["", "a", "Ünïcödé 👩‍👩‍👧", "'\"\\\n"], \.string, \.stringOrNil, \.strings)
  }

  @Test("Bool properties keep their values")
  func bools() throws { try expectKept([true, false], \.bool, \.boolOrNil, \.bools) }

  @Test("integer properties of all widths keep their values")
  func integers() throws {
    try expectKept([0, -1, .min, .max], \.int, \.intOrNil, \.ints)
    try expectKept([0, .min, .max], \.int8, \.int8OrNil, \.int8s)
    try expectKept([0, .min, .max], \.int16, \.int16OrNil, \.int16s)
    try expectKept([0, .min, .max], \.int32, \.int32OrNil, \.int32s)
    try expectKept([0, .min, .max], \.int64, \.int64OrNil, \.int64s)
    try expectKept([0, .max], \.uint, \.uintOrNil, \.uints)
    try expectKept([0, .max], \.uint8, \.uint8OrNil, \.uint8s)
    try expectKept([0, .max], \.uint16, \.uint16OrNil, \.uint16s)
    try expectKept([0, .max], \.uint32, \.uint32OrNil, \.uint32s)
    try expectKept([0, .max], \.uint64, \.uint64OrNil, \.uint64s)
  }

  @Test("Double and Float properties keep their values")
  func reals() throws {
    try expectKept([0, 0.1, -2, 1e300], \.double, \.doubleOrNil, \.doubles)
    try expectKept([0, 0.1, -2, 1e30], \.float, \.floatOrNil, \.floats)
  }

  @Test("Decimal properties keep their values")
  func decimals() throws {
    let decimals = try ["0", "-7", "10.11"].map { try #require(Decimal(string: $0)) }
    try expectKept(decimals, \.decimal, \.decimalOrNil, \.decimals)
  }

  @Test("Date properties keep their values")
  func dates() throws {
    let dates = [0, 0.25, -1e9, 7e8].map { Date(timeIntervalSinceReferenceDate: $0) }
    try expectKept(dates, \.date, \.dateOrNil, \.dates)
  }

  @Test("UUID properties keep their values")
  func uuids() throws { try expectKept([UUID(), UUID()], \.uuid, \.uuidOrNil, \.uuids) }

  @Test("URL properties keep their values")
  func urls() throws {
    let urls = try ["https://example.org/a?b=c#d", "file:///tmp/x"].map {
      try #require(URL(string: $0))
    }
    try expectKept(urls, \.url, \.urlOrNil, \.urls)
  }

  @Test("Data properties keep their values")
  func datas() throws {
    try expectKept([Data(), Data([0, 255, 1])], \.data, \.dataOrNil, \.datas)
  }

  @Test("properties of RawRepresentable enums and structs keep their values")
  func rawValues() throws {
    try expectKept([.low, .high], \.level, \.levelOrNil, \.levels)
    try expectKept(
      [EveryType.Code(rawValue: "a"), EveryType.Code(rawValue: "")], \.code, \.codeOrNil, \.codes)
  }

  @Test(
    "properties of Codable enums without raw value keep their values, with and without associated values"
  )
  func enums() throws {
    try expectKept([.round, .square], \.shape, \.shapeOrNil, \.shapes)
    try expectKept(
      [.unknown, .person(name: "Ada", age: 36)], \.source, \.sourceOrNil, \.sources)
  }

  @Test("properties of Codable structs (composites) keep their values")
  func structs() throws {
    try expectKept(
      [
        EveryType.Point(x: 1, y: -2.5, label: "a", tags: ["x"]), EveryType.Point(x: 0, y: 0),
      ], \.point, \.pointOrNil, \.points)
    let context = ModelContext(container)
    let model = EveryType()
    model.pointsOrNil = [EveryType.Point(x: 1, y: 2)]
    context.insert(model)
    try context.save()
    let found = try #require(try ModelContext(container).fetch(FetchDescriptor<EveryType>()).first)
    #expect(found.pointsOrNil == [EveryType.Point(x: 1, y: 2)])
  }

  @Test("AttributedString properties keep their values")
  func attributedStrings() throws {
    var text = AttributedString("See ")
    var link = AttributedString("here")
    link.link = URL(string: "https://example.org")
    link.languageIdentifier = "en"
    link.inlinePresentationIntent = [.emphasized, .code]
    link.presentationIntent = PresentationIntent(
      .listItem(ordinal: 2), identity: 2,
      parent: PresentationIntent(.unorderedList, identity: 1))
    text += link
    try expectKept(
      [AttributedString("plain"), text, AttributedString()], \.text, \.textOrNil, \.texts)
  }

  @Test("a field of a composite is changed in place, and that alone is a change")
  func changeInPlace() throws {
    let context = ModelContext(container)
    let model = EveryType()
    context.insert(model)
    try context.save()
    #expect(!context.hasChanges)
    model.point.x = 9
    model.strings.append("z")
    #expect(context.hasChanges && context.changedModelsArray.count == 1)
    try context.save()
    let found = try #require(try ModelContext(container).fetch(FetchDescriptor<EveryType>()).first)
    #expect(found.point.x == 9 && found.strings == ["z"])
  }
}
