import Foundation
import GRDB
import InstarSchema
import InstarStore
import Testing

@testable import InstarKeeper

@Suite("Counting the rows and links of a store")
struct StoreCensusTests {
  private func census(_ fixture: KeeperFixture) throws -> StoreCensus {
    let layout = try KeeperFixture.first.layout()
    return try StoreReader.withReadOnlyStore(fixture.store) {
      try StoreCensus($0, layout: layout, findsBroken: true)
    }
  }

  @Test("rows are counted by entity, and both ends of a relationship have the same links")
  func counts() throws {
    let census = try census(KeeperFixture(rows: 7))
    #expect(census.rows == ["Note": 7, "Folder": 1])
    let links = StoreCensus.Links(count: 7, broken: 0, location: "ZNOTE.ZFOLDER")
    #expect(census.links == ["Note.folder": links, "Folder.notes": links])
    #expect(census.strayRows.isEmpty)
  }

  @Test("links to missing rows are broken, and rows of no entity are strays")
  func damage() throws {
    let fixture = try KeeperFixture(rows: 7)
    try fixture.execute(
      "UPDATE ZNOTE SET ZFOLDER = 99 WHERE Z_PK <= 3; UPDATE ZNOTE SET Z_ENT = 77 WHERE Z_PK = 7")
    let census = try census(fixture)
    #expect(census.rows["Note"] == 6)
    #expect(census.strayRows == ["ZNOTE": 1])
    #expect(
      census.links["Note.folder"]
        == StoreCensus.Links(count: 6, broken: 3, location: "ZNOTE.ZFOLDER"))
  }
}
