import Instar

/// `container STORE`: opens a store as an app does, which migrates it, and prints how many parcels it has.
@main
enum OpenContainer {
  static func main() throws {
    guard let path = CommandLine.arguments.dropFirst().first else { exit(2) }
    let container = try ModelContainer(
      for: Schema(versionedSchema: ParcelsV2.self), migrationPlan: ParcelsPlan.self,
      configurations: ModelConfiguration(url: URL(fileURLWithPath: path)))
    print(try ModelContext(container).fetchCount(FetchDescriptor<ParcelsV2.Parcel>()))
    try container.close()
  }
}
