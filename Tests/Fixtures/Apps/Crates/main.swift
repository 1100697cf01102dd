import Instar

// Crates make STORE COUNT: a store of the first version. Crates open STORE: migrates it, and says what is in it.
let words = Array(CommandLine.arguments.dropFirst())
let url = URL(filePath: words[1])

switch words[0] {
case "make":
  let container = try ModelContainer(
    for: Schema(versionedSchema: CratesV1.self), configurations: ModelConfiguration(url: url))
  let context = ModelContext(container)
  for number in 0..<(Int(words[2]) ?? 0) {
    let crate = CratesV1.Crate(number: number, contents: String(repeating: "x", count: 20_000))
    crate.items = [CratesV1.Item(name: "\(number)")]
    context.insert(crate)
  }
  try context.save()
  try container.close()
default:
  let container = try ModelContainer(
    for: Crate.self, migrationPlan: CratesPlan.self, configurations: ModelConfiguration(url: url))
  let context = ModelContext(container)
  let predicate = #Predicate<Crate> { $0.length == 20_000 && $0.items.count == 1 }
  let whole = try context.fetchCount(FetchDescriptor(predicate: predicate))
  print(
    "\(container.schema.version): \(whole) of \(try context.fetchCount(FetchDescriptor<Crate>()))")
  try container.close()
}
