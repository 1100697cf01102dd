// swift-format-ignore-file
import Instar

typealias Library = LibrarySchemaV1
let container = try makeContainer(Library.self)
let context = ModelContext(container)
let ann = Library.Author(name: "Ann"), bob = Library.Author(name: "Bob")
let one = Library.Book(isbn: "1", title: "One", authors: [ann, bob])
let two = Library.Book(isbn: "2", title: "Two", authors: [ann])
one.sequel = two
let reader = Library.Reader(7)
context.insert(one)
context.insert(two)
context.insert(Library.Loan(book: two, reader: reader))
try context.save()

let other = ModelContext(container)
let books = try other.fetch(FetchDescriptor<Library.Book>(sortBy: [SortDescriptor(\.isbn)]))
check(books[1].prequel === books[0] && books[0].authors.count == 2)
check(books[1].loans.first?.reader.name == "reader 7")
check(books[1].authors.first?.books.count == 2)
if let reader = books[1].loans.first?.reader { other.delete(reader) }
do {
  try other.save()
  check(false)
} catch SwiftDataError.modelValidationFailure {
  other.rollback()
}
other.delete(books[1])
try other.save()
check(try other.fetchCount(FetchDescriptor<Library.Loan>()) == 0)
check(books[0].sequel == nil)
