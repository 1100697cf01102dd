import Foundation

/// Runs the body with the path of a fresh folder, which is gone afterwards.
func withTemporaryFolder<Value>(_ body: (String) throws -> Value) throws -> Value {
  let folder = try makeTemporaryFolder()
  defer { try? FileManager.default.removeItem(atPath: folder) }
  return try body(folder)
}

func makeTemporaryFolder() throws -> String {
  let folder = FileManager.default.temporaryDirectory.path + "/instar-daemon-\(UUID().uuidString)"
  try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
  return folder
}

func write(_ text: String, to path: String) throws {
  try Data(text.utf8).write(to: URL(fileURLWithPath: path))
}
