import Foundation
import Glibc
import InstarSchema

/// The functions of libcmark, the reference parser of CommonMark, that are needed to read a document.
///
/// The library is loaded when Markdown is first parsed. Its soname changes with each release, so linking it would
/// bind a build to one release of Debian. These functions are the same since libcmark 0.28.
struct CommonMark: @unchecked Sendable {
  // Sendable, because the function pointers are those of a library that is never unloaded.
  typealias Node = OpaquePointer
  typealias Text = UnsafePointer<CChar>

  let parse: @convention(c) (Text?, Int, Int32) -> Node?
  let free: @convention(c) (Node?) -> Void
  let firstChild: @convention(c) (Node?) -> Node?
  let next: @convention(c) (Node?) -> Node?
  let typeName: @convention(c) (Node?) -> Text?
  let literal: @convention(c) (Node?) -> Text?
  let address: @convention(c) (Node?) -> Text?
  let fenceInfo: @convention(c) (Node?) -> Text?
  let headingLevel: @convention(c) (Node?) -> Int32
  let listType: @convention(c) (Node?) -> Int32
  let listStart: @convention(c) (Node?) -> Int32

  /// Returns the library of this system.
  ///
  /// - Throws: `unsupported` if it is not installed.
  static func loaded() throws(InstarError) -> CommonMark {
    guard let library else {
      throw InstarError(
        .unsupported, "cannot read Markdown", cause: "libcmark is not installed",
        next: "run as root: apt-get install libcmark-dev")
    }
    return library
  }

  private static let library: CommonMark? = {
    // A library without one of the functions is another one: the next name may be the right one.
    for name in names {
      if let handle = dlopen(name, RTLD_NOW | RTLD_LOCAL), let library = try? CommonMark(handle) {
        return library
      }
    }
    return nil
  }()

  /// The names in Debian 12 and 13 first, then any other release.
  private static var names: [String] {
    let known = ["libcmark.so.0.30.2", "libcmark.so.0.31.1", "libcmark.so.0.31.0"]
    let folders = [
      "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib",
    ]
    let found = folders.flatMap { folder in
      ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).sorted()
        .filter { $0.hasPrefix("libcmark.so.0.") }.map { "\(folder)/\($0)" }
    }
    return known + found
  }

  private struct MissingSymbol: Error {}

  private init(_ handle: UnsafeMutableRawPointer) throws(MissingSymbol) {
    func symbol<Function>(_ name: String) throws(MissingSymbol) -> Function {
      guard let address = dlsym(handle, name) else { throw MissingSymbol() }
      return unsafeBitCast(address, to: Function.self)
    }
    parse = try symbol("cmark_parse_document")
    free = try symbol("cmark_node_free")
    firstChild = try symbol("cmark_node_first_child")
    next = try symbol("cmark_node_next")
    typeName = try symbol("cmark_node_get_type_string")
    literal = try symbol("cmark_node_get_literal")
    address = try symbol("cmark_node_get_url")
    fenceInfo = try symbol("cmark_node_get_fence_info")
    headingLevel = try symbol("cmark_node_get_heading_level")
    listType = try symbol("cmark_node_get_list_type")
    listStart = try symbol("cmark_node_get_list_start")
  }

  func children(of node: Node) -> [Node] {
    var children: [Node] = []
    var child = firstChild(node)
    while let current = child {
      children.append(current)
      child = next(current)
    }
    return children
  }

  func type(of node: Node) -> String { typeName(node).map { String(cString: $0) } ?? "" }
  func text(of node: Node) -> String { literal(node).map { String(cString: $0) } ?? "" }
}
