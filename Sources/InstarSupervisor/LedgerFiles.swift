import InstarLinux
import InstarSchema

/// The files of a ledger by their numbers, in order.
struct LedgerFiles {
  private(set) var full: [Int] = []
  private(set) var kept: [Int] = []

  init(of folder: String) throws(InstarError) {
    for name in try FolderNames.all(in: folder, suffix: ".jsonl") {
      let parts = name.split(separator: ".", omittingEmptySubsequences: false)
      guard parts.count == 3, let number = Int(parts[1]), number > 0 else { continue }
      if name == Self.full(number) { full.append(number) }
      if name == Self.kept(number) { kept.append(number) }
    }
    full.sort()
    kept.sort()
  }

  static func full(_ number: Int) -> String { "ledger.\(number).jsonl" }
  static func kept(_ number: Int) -> String { "kept.\(number).jsonl" }

  /// The full files that no other one stands for.
  var counting: [Int] { full.filter { $0 > kept.last ?? 0 } }
  /// The name of the file with what is kept of others; none or one.
  var keptNames: [String] { kept.suffix(1).map(Self.kept) }
  /// Those that count, oldest first.
  var names: [String] { keptNames + counting.map(Self.full) }
  /// Those that do not.
  var outdated: [String] {
    kept.dropLast().map(Self.kept) + full.filter { $0 <= kept.last ?? 0 }.map(Self.full)
  }
}
