/// Sizes as the configuration and the command line show them: one number and `MiB` or `GiB`.
public enum SizeText {
  /// The bounds for the memory of a worker, in bytes.
  public static let workerMemory: ClosedRange<Int64> = (256 << 20)...(1024 << 30)
  /// These bounds in words: "from 256MiB to 1024GiB".
  package static let workerMemoryBounds =
    "from \(argument(workerMemory.lowerBound)) to \(argument(workerMemory.upperBound))"

  /// Reads `512MiB` or `4GiB` as bytes. Returns `nil` for anything else.
  public static func parse(_ text: String) -> Int64? {
    let digits = text.prefix { ("0"..."9").contains($0) }
    let shifts: [String: Int64] = ["MiB": 20, "GiB": 30]
    guard let number = Int64(digits), let shift = shifts[String(text.dropFirst(digits.count))]
    else { return nil }
    let (bytes, overflow) = number.multipliedReportingOverflow(by: 1 << shift)
    return overflow ? nil : bytes
  }

  /// Returns a size of whole MiB as `parse` reads it, such as `4GiB`.
  private static func argument(_ bytes: Int64) -> String {
    bytes.isMultiple(of: 1 << 30) ? "\(bytes >> 30)GiB" : "\(bytes >> 20)MiB"
  }
}
