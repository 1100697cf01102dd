// swift-format-ignore-file
import Foundation
import Instar

@Model final class Order {
  var id: Int
  var `default`: Bool = false
  var `class`: String = "c"
  var `init`: Int = 3
  var order: Int = 0
  var group: String = "g"
  var select: String = "s"
  var from: Date = .distantPast
  var `where`: String = "w"
  var index: Int = 1
  var key: String = "k"
  var value: Double = 1.5
  var values: [Int] = []
  var type: String = "t"
  var name: String = "n"
  var table: String = "t"
  var rowid: Int = 9
  var version: Int = 2
  var description: String = "d"
  var slot: Int = 4
  var storage: String = "st"
  var context: String = "ctx"
  var state: Int = 5
  var model: String = "m"
  var schema: String = "sch"
  var limit: Int = 6
  var größe: Double = 1.75
  var 名前: String = "名"
  var émigré: Bool = true
  var is_done: Bool = false
  var _underscored: String = "u"
  var URLString: String = "url"
  var z_pk: Int = 11
  var orders: [Order] = []
  var parent: Order?

  init(id: Int) { self.id = id }
}

@Model final class Group {
  var `in`: String
  init(in value: String) { self.in = value }
}

enum WordsSchema: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static let models: [any PersistentModel.Type] = [Order.self, Group.self]
}

enum WordsPlan: SchemaMigrationPlan {
  static let schemas: [any VersionedSchema.Type] = [WordsSchema.self]
  static let stages: [MigrationStage] = []
}
