// swift-format-ignore-file
import Foundation
import Instar

// Three versions, stages out of order, values handed from willMigrate to didMigrate as people do it.

enum ContactsSchemaV1: VersionedSchema {
    static var versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Person.self] }

    @Model class Person {
        var fullName: String
        var email: String
        init(fullName: String, email: String) {
            self.fullName = fullName
            self.email = email
        }
    }
}

enum ContactsSchemaV2: VersionedSchema {
    static var versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Person.self] }

    @Model class Person {
        var firstName: String = ""
        var lastName: String = ""
        @Attribute(.unique) var email: String
        init(firstName: String, lastName: String, email: String) {
            self.firstName = firstName
            self.lastName = lastName
            self.email = email
        }
    }
}

enum ContactsSchemaV3: VersionedSchema {
    static var versionIdentifier = Schema.Version(3, 0, 0)
    static var models: [any PersistentModel.Type] { [Person.self, Company.self] }

    @Model class Person {
        @Attribute(originalName: "firstName") var givenName: String = ""
        @Attribute(originalName: "lastName") var familyName: String = ""
        @Attribute(.unique) var email: String
        @Relationship var company: Company?

        init(givenName: String, familyName: String, email: String) {
            self.givenName = givenName
            self.familyName = familyName
            self.email = email
        }
    }

    @Model class Company {
        var name: String
        @Relationship(inverse: \Person.company) var staff: [Person] = []
        init(name: String) { self.name = name }
    }
}

typealias CurrentVersion = ContactsSchemaV3
typealias Person = CurrentVersion.Person
typealias Company = CurrentVersion.Company

class ContactsMigrationPlan: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] {
        [ContactsSchemaV1.self, ContactsSchemaV2.self, ContactsSchemaV3.self]
    }

    static var stages: [MigrationStage] {
        [v2ToV3, v1ToV2]
    }

    private static var names: [String: String] = [:]

    static let v2ToV3 = MigrationStage.lightweight(fromVersion: ContactsSchemaV2.self, toVersion: ContactsSchemaV3.self)

    static let v1ToV2 = MigrationStage.custom(
        fromVersion: ContactsSchemaV1.self,
        toVersion: ContactsSchemaV2.self,
        willMigrate: { context in
            var seen: [String: ContactsSchemaV1.Person] = [:]
            for person in try context.fetch(FetchDescriptor<ContactsSchemaV1.Person>()) {
                if seen[person.email] != nil {
                    context.delete(person)
                } else {
                    seen[person.email] = person
                    names[person.email] = person.fullName
                }
            }
            try context.save()
        }, didMigrate: { context in
            let people = try context.fetch(FetchDescriptor<ContactsSchemaV2.Person>())
            people.forEach { person in
                let parts = names[person.email]?.split(separator: " ").map(String.init) ?? []
                person.firstName = parts.first ?? ""
                person.lastName = parts.dropFirst().joined(separator: " ")
            }
            try context.save()
        })
}
