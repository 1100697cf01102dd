import Instar
import InstarTestSupport
import Testing

@Suite("Links that both sides of a many-to-many relationship change, one save after the other")
struct LinksFromBothSidesTests {
  private typealias Note = Library.Note
  private typealias Tag = Library.Tag

  let container: ModelContainer
  let context: ModelContext

  init() throws {
    container = try Library.container()
    context = ModelContext(container)
  }

  /// The links in the store, by the identifiers of their notes and the names of their tags.
  private func storedLinks() throws -> Set<[String]> {
    let reader = ModelContext(container)
    let ofNotes = try reader.fetch(FetchDescriptor<Note>()).flatMap { note in
      note.tags.map { [note.uid, $0.name] }
    }
    let ofTags = try reader.fetch(FetchDescriptor<Tag>()).flatMap { tag in
      tag.notes.map { [$0.uid, tag.name] }
    }
    #expect(Set(ofNotes) == Set(ofTags))
    return Set(ofNotes)
  }

  @Test("a link that one side made is removed from the other side")
  func removal() throws {
    let (note, tag) = (Note(uid: "note"), Tag(name: "tag"))
    context.insert(note)
    context.insert(tag)
    try context.save()
    note.tags.append(tag)
    try context.save()
    tag.notes.removeAll { $0 === note }
    try context.save()
    #expect(note.tags.isEmpty)
    #expect(try storedLinks().isEmpty)
  }

  @Test("a link that one side removed is made again by the other side")
  func addition() throws {
    let (note, tag) = (Note(uid: "note"), Tag(name: "tag"))
    context.insert(note)
    context.insert(tag)
    note.tags = [tag]
    try context.save()
    note.tags = []
    try context.save()
    tag.notes.append(note)
    try context.save()
    #expect(note.tags.count == 1)
    #expect(try storedLinks() == [["note", "tag"]])
  }

  @Test("after each save the store has the links that memory has")
  func random() throws {
    let seed = UInt64.random(in: 0 ... .max)
    var generator = SeededGenerator(seed: seed)
    let notes = (0..<4).map { Note(uid: "n\($0)") }
    let tags = (0..<4).map { Tag(name: "t\($0)") }
    for note in notes { context.insert(note) }
    for tag in tags { context.insert(tag) }
    try context.save()
    var expected: Set<[String]> = []
    for step in 0..<300 {
      let note = notes[Int.random(in: 0..<notes.count, using: &generator)]
      let tag = tags[Int.random(in: 0..<tags.count, using: &generator)]
      let link = [note.uid, tag.name]
      switch Int.random(in: 0..<6, using: &generator) {
      case 0:
        note.tags.append(tag)
        expected.insert(link)
      case 1:
        tag.notes.append(note)
        expected.insert(link)
      case 2:
        note.tags.removeAll { $0 === tag }
        expected.remove(link)
      case 3:
        tag.notes.removeAll { $0 === note }
        expected.remove(link)
      case 4:
        try context.save()
        #expect(try storedLinks() == expected, "seed \(seed), step \(step)")
      default:
        context.rollback()
        expected = try storedLinks()
      }
      let inMemory = Set(notes.flatMap { note in note.tags.map { [note.uid, $0.name] } })
      #expect(inMemory == expected, "seed \(seed), step \(step)")
    }
  }
}
