import Instar

/// `app OPERATION PATH [COUNT]`: the work of one benchmark in an app that uses the SDK.
///
/// Prints one JSON line with the seconds that the work took, without the start of the process.
@main
enum App {
  static let usage = """
    usage: app OPERATION PATH [COUNT]

      create   create an empty store
      insert   create a store, insert COUNT notes and save
      fetch    fetch all notes of a store that 'insert' created, and read three properties of each
      inverse  create a store with one folder, insert COUNT notes that refer to it, and save


    """

  static func main() throws {
    let arguments = CommandLine.arguments.dropFirst()
    guard let operation = arguments.first, let path = arguments.dropFirst().first else { stop() }
    let count = arguments.dropFirst(2).first.flatMap { Int($0) } ?? 0
    let clock = ContinuousClock()
    let start = clock.now
    let schema = Schema(versionedSchema: NotesV1.self)
    let container = try ModelContainer(
      for: schema,
      configurations: ModelConfiguration(schema: schema, url: URL(fileURLWithPath: path)))
    let context = ModelContext(container)
    var rows = 0
    switch operation {
    case "create": break
    case "insert":
      insertNotes(context, count: count, folder: nil)
      try context.save()
      rows = count
    case "fetch":
      for note in try context.fetch(FetchDescriptor<NotesV1.Note>()) {
        rows += note.uid.utf8.count + note.title.utf8.count + Int(note.created)
      }
    case "inverse":
      let folder = NotesV1.Folder(name: "Folder")
      context.insert(folder)
      insertNotes(context, count: count, folder: folder)
      try context.save()
      rows = count
    default: stop()
    }
    let seconds = (clock.now - start) / .seconds(1)
    print(#"{"operation":"\#(operation)","s":\#(seconds),"rows":\#(rows)}"#)
  }

  static func insertNotes(_ context: ModelContext, count: Int, folder: NotesV1.Folder?) {
    for number in 0..<count {
      let note = NotesV1.Note(
        uid: "note-\(number)", title: "Note \(number)", content: "The content of note \(number).",
        created: Double(number))
      context.insert(note)
      note.folder = folder
    }
  }

  static func stop() -> Never {
    FileHandle.standardError.write(Data(usage.utf8))
    exit(2)
  }
}
