import Foundation
import Instar

/// An empty store in memory, of the models of one version.
func makeContainer(_ version: any VersionedSchema.Type) throws -> ModelContainer {
  try ModelContainer(
    for: Schema(versionedSchema: version),
    configurations: ModelConfiguration(isStoredInMemoryOnly: true))
}

/// Where a store of the first version is wanted, if one is.
let wantedStore = CommandLine.arguments.dropFirst().first

/// Makes a store of one version where one is wanted, and ends the program.
func makeStore(_ version: any VersionedSchema.Type, fill: (ModelContext) -> Void) throws {
  guard let wantedStore else { return }
  let container = try ModelContainer(
    for: Schema(versionedSchema: version),
    configurations: ModelConfiguration(url: URL(filePath: wantedStore)))
  let context = ModelContext(container)
  fill(context)
  try context.save()
  exit(0)
}

/// Ends the program with the line of the first expectation that does not hold, or throws.
func check(_ condition: @autoclosure () throws -> Bool, line: Int = #line) {
  do {
    if try condition() { return }
    print("line \(line) of main.swift does not hold")
  } catch {
    print("line \(line) of main.swift threw: \(error)")
  }
  exit(1)
}
