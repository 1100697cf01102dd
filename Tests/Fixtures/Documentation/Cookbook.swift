// Compiled with: Recipes.swift BooksV1.swift
import Instar

// Without an argument it makes the stores that the recipes migrate. With 'check' it reads the migrated ones with the
// models of version 2.

@main
enum Cookbook {
  static func main() throws {
    if CommandLine.arguments.dropFirst() == ["check"] { try check() } else { try make() }
  }

  static func make() throws {
    try inStore("people.store", PeopleV1.self) { context in
      context.insert(
        PeopleV1.Person(name: "Ada King Lovelace", street: "12 Elm St", city: "London"))
      context.insert(PeopleV1.Person(name: "Plato", street: "Academy", city: "Athens"))
    }
    try inStore("invoices.store", InvoicesV1.self) { context in
      context.insert(InvoicesV1.Invoice(number: 1, total: "12.50"))
      context.insert(InvoicesV1.Invoice(number: 2, total: "0.1"))
    }
    try inStore("contacts.store", ContactsV1.self) { context in
      for (number, email) in ["a@b.c", "a@b.c", "d@e.f"].enumerated() {
        let contact = ContactsV1.Contact(
          email: email, changed: Date(timeIntervalSinceReferenceDate: Double(number)))
        context.insert(contact)
        context.insert(ContactsV1.Call(subject: "call \(number)", contact: contact))
      }
    }
    try inStore("courses.store", CoursesV1.self) { context in
      let students = ["Ann", "Bob"].map(CoursesV1.Student.init(name:))
      for student in students { context.insert(student) }
      for (number, title) in ["Logic", "Music"].enumerated() {
        let course = CoursesV1.Course(
          title: title, begins: Date(timeIntervalSinceReferenceDate: Double(number)))
        context.insert(course)
        course.students = number == 0 ? students : [students[1]]
      }
    }
    try inStore("photos.store", PhotosV1.self) { context in
      context.insert(PhotosV1.Photo(name: "large", image: Data(repeating: 7, count: 300_000)))
      context.insert(PhotosV1.Photo(name: "small", image: Data([1, 2, 3])))
    }
    try inStore("books.sqlite", BooksV1.self) { context in
      let author = BooksV1.Author(name: "Various")
      context.insert(author)
      for name in ["Emma", "Dracula"] { context.insert(BooksV1.Book(name: name, author: author)) }
    }
  }

  static func check() throws {
    try inStore("people.store", PeopleV2.self) { context in
      let people = try context.fetch(
        FetchDescriptor<PeopleV2.Person>(sortBy: [SortDescriptor(\.familyName)]))
      expect(
        people.map { [$0.givenName, $0.familyName, $0.address] },
        [["Ada King", "Lovelace", "12 Elm St, London"], ["", "Plato", "Academy, Athens"]])
    }
    try inStore("invoices.store", InvoicesV2.self) { context in
      let invoices = try context.fetch(
        FetchDescriptor<InvoicesV2.Invoice>(sortBy: [SortDescriptor(\.number)]))
      expect(invoices.map { "\($0.total)" }, ["12.5", "0.1"])
    }
    try inStore("contacts.store", ContactsV2.self) { context in
      let contacts = try context.fetch(
        FetchDescriptor<ContactsV2.Contact>(sortBy: [SortDescriptor(\.email)]))
      expect(
        contacts.map { [$0.email] + $0.calls.map(\.subject).sorted() },
        [["a@b.c", "call 0", "call 1"], ["d@e.f", "call 2"]])
      // The newer one was kept.
      expect(contacts.first?.changed.timeIntervalSinceReferenceDate, 1)
    }
    try inStore("courses.store", CoursesV2.self) { context in
      let courses = try context.fetch(
        FetchDescriptor<CoursesV2.Course>(sortBy: [SortDescriptor(\.title)]))
      expect(
        courses.map { [$0.title] + $0.enrollments.compactMap(\.student?.name).sorted() },
        [["Logic", "Ann", "Bob"], ["Music", "Bob"]])
      expect(courses.map { Set($0.enrollments.map(\.since)) }, courses.map { [$0.begins] })
    }
    try inStore("photos.store", PhotosV2.self) { context in
      let photos = try context.fetch(
        FetchDescriptor<PhotosV2.Photo>(sortBy: [SortDescriptor(\.name)]))
      expect(photos.map(\.image), [Data(repeating: 7, count: 300_000), Data([1, 2, 3])])
    }
    let files = try FileManager.default.contentsOfDirectory(
      atPath: ".photos_SUPPORT/_EXTERNAL_DATA")
    expect(files.count, 1)
  }

  private static func expect<Value: Equatable>(
    _ found: Value, _ expected: Value, line: Int = #line
  ) {
    guard found != expected else { return }
    print("line \(line): found \(found), expected \(expected)")
    exit(1)
  }

  private static func inStore(
    _ name: String, _ version: any VersionedSchema.Type,
    _ body: (ModelContext) throws -> Void
  ) throws {
    let container = try ModelContainer(
      for: Schema(versionedSchema: version),
      configurations: ModelConfiguration(url: URL(filePath: name)))
    let context = ModelContext(container)
    try body(context)
    try context.save()
    try container.close()
  }
}
