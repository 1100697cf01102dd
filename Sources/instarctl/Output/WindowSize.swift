import Glibc

/// The size of a terminal's window.
struct WindowSize {
  private(set) var columns = 80
  private(set) var rows = 24

  /// - Parameter descriptor: Of the terminal. If it is not a terminal, the size is that of a usual window.
  init(of descriptor: Int32) {
    var size = winsize()
    guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0 else { return }
    // A terminal may know only one of the two.
    if size.ws_col > 0 { columns = Int(size.ws_col) }
    if size.ws_row > 0 { rows = Int(size.ws_row) }
  }

  /// The first of these lines, as many as the window has room for above the cursor. If that is not all of them, the
  /// last one says how many are left out.
  func fitting(_ lines: [ConsoleLine]) -> [ConsoleLine] {
    let heights = lines.map { max(1, ($0.width + columns - 1) / columns) }
    guard heights.reduce(0, +) >= rows else { return lines }
    var (count, height) = (0, 0)
    // One row for the last line, and one for the cursor.
    while count < lines.count, height + heights[count] <= rows - 2 {
      height += heights[count]
      count += 1
    }
    let rest = lines.count - count
    return lines.prefix(count) + ["… \(rest) more lines: enlarge the window to see them"]
  }
}
