import Instar

/// `make-stores FOLDER COUNT NOTES`: writes COUNT stores at 1.0.0, with NOTES notes each.
///
/// The contents follow from the numbers alone (apart from each store's own UUID), so that a store
/// can be checked after its migration.
@main
enum MakeStores {
  static func main() throws {
    let arguments = CommandLine.arguments.dropFirst()
    guard arguments.count == 3, let folder = arguments.first,
      let count = arguments.dropFirst().first.flatMap({ Int($0) }), count >= 0,
      let notes = arguments.last.flatMap({ Int($0) }), notes >= 0
    else {
      FileHandle.standardError.write(Data("usage: make-stores FOLDER COUNT NOTES\n".utf8))
      exit(2)
    }
    let url = URL(fileURLWithPath: folder, isDirectory: true)
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    for number in 0..<count {
      try makeStore(at: url.appendingPathComponent("notes-\(number + 1).store"), notes: notes)
    }
  }

  /// One folder for every ten notes, five tags; a note has up to three tags, and every seventh is
  /// in no folder.
  static func makeStore(at url: URL, notes: Int) throws {
    let schema = Schema(versionedSchema: NotesSchemaV1.self)
    let container = try ModelContainer(
      for: schema, configurations: ModelConfiguration(schema: schema, url: url))
    let context = ModelContext(container)

    let folders = (0...(notes / 10)).map {
      NotesSchemaV1.Folder(uid: "folder-\($0)", name: "Folder \($0)")
    }
    let tags = ["home", "work", "later", "read", "música"].enumerated().map {
      NotesSchemaV1.Tag(uid: "tag-\($0.offset)", name: $0.element)
    }
    for folder in folders { context.insert(folder) }
    for tag in tags { context.insert(tag) }

    for number in 0..<notes {
      let note = NotesSchemaV1.Note(
        uid: "note-\(number)", title: "Note \(number)",
        content: "First paragraph of note \(number).\n\nSecond, with an ä and \"quotes\".",
        isPinned: number.isMultiple(of: 5),
        createdAt: Date(timeIntervalSinceReferenceDate: Double(number) * 3600))
      context.insert(note)
      if !number.isMultiple(of: 7) { note.folder = folders[number / 10] }
      note.tags = (0..<(number % 4)).map { tags[(number + $0) % tags.count] }
    }
    try context.save()
  }
}
