internal import GRDB
internal import InstarSchema

extension PlainProbe {
  func introspect(_ db: Database, path: String) throws -> () -> StoreIntrospection {
    let tables = try PlainTables(db)
    return {
      var introspection = PlainIntrospection(tables, toolVersions: identity.toolVersions)
      return introspection.read(version: schemaVersion)
    }
  }
}
