import Foundation

/// Ends this program with a text on standard error.
package func fail(_ text: String, status: Int32) -> Never {
  FileHandle.standardError.write(Data((text + "\n").utf8))
  exit(status)
}
