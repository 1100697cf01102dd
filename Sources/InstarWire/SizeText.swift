/// Sizes as the configuration and the command line show them: one number and `MiB` or `GiB`.
public enum SizeText {
  /// The bounds for the memory of a worker: 256 MiB to 1024 GiB.
  public static let workerMemory: ClosedRange<Int64> = (256 << 20)...(1024 << 30)

  /// Reads `512MiB` or `4GiB` as bytes. Returns `nil` for anything else.
  public static func parse(_ text: String) -> Int64? {
    let digits = text.prefix { ("0"..."9").contains($0) }
    let shifts: [String: Int64] = ["MiB": 20, "GiB": 30]
    guard let number = Int64(digits), let shift = shifts[String(text.dropFirst(digits.count))]
    else { return nil }
    let (bytes, overflow) = number.multipliedReportingOverflow(by: 1 << shift)
    return overflow ? nil : bytes
  }
}
