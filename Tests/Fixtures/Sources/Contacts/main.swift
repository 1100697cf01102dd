// swift-format-ignore-file
import Instar

try makeStore(ContactsSchemaV1.self) { context in
    for (name, email) in [("Ada King Lovelace", "ada"), ("Ada", "ada"), ("Grace Hopper", "grace")] {
        context.insert(ContactsSchemaV1.Person(fullName: name, email: email))
    }
}

let container = try makeContainer(CurrentVersion.self)
let context = ModelContext(container)
let company = Company(name: "ACME")
company.staff = [Person(givenName: "Road", familyName: "Runner", email: "rr@acme.example")]
context.insert(company)
try context.save()
// An upsert: the row of that address takes the new values.
context.insert(Person(givenName: "Roadie", familyName: "Runner", email: "rr@acme.example"))
try context.save()
let other = ModelContext(container)
check(try other.fetch(FetchDescriptor<Person>()).map(\.givenName) == ["Roadie"])
