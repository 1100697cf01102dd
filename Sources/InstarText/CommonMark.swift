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
        next: "run: apt install libcmark-dev (or the libcmark0… package of the release)")
    }
    return library
  }

  private static let library: CommonMark? = {
    for name in names {
      if let handle = dlopen(name, RTLD_NOW | RTLD_LOCAL), let library = CommonMark(handle) {
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

  private init?(_ handle: UnsafeMutableRawPointer) {
    func symbol<Function>(_ name: String) -> Function? {
      dlsym(handle, name).map { unsafeBitCast($0, to: Function.self) }
    }
    guard let parse: @convention(c) (Text?, Int, Int32) -> Node? = symbol("cmark_parse_document"),
      let free: @convention(c) (Node?) -> Void = symbol("cmark_node_free"),
      let firstChild: @convention(c) (Node?) -> Node? = symbol("cmark_node_first_child"),
      let next: @convention(c) (Node?) -> Node? = symbol("cmark_node_next"),
      let typeName: @convention(c) (Node?) -> Text? = symbol("cmark_node_get_type_string"),
      let literal: @convention(c) (Node?) -> Text? = symbol("cmark_node_get_literal"),
      let address: @convention(c) (Node?) -> Text? = symbol("cmark_node_get_url"),
      let fenceInfo: @convention(c) (Node?) -> Text? = symbol("cmark_node_get_fence_info"),
      let headingLevel: @convention(c) (Node?) -> Int32 = symbol("cmark_node_get_heading_level"),
      let listType: @convention(c) (Node?) -> Int32 = symbol("cmark_node_get_list_type"),
      let listStart: @convention(c) (Node?) -> Int32 = symbol("cmark_node_get_list_start")
    else { return nil }
    self.parse = parse
    self.free = free
    self.firstChild = firstChild
    self.next = next
    self.typeName = typeName
    self.literal = literal
    self.address = address
    self.fenceInfo = fenceInfo
    self.headingLevel = headingLevel
    self.listType = listType
    self.listStart = listStart
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
