import Instar

/// One paragraph of a note, as 2.0.0 keeps it.
struct Paragraph: Codable, Hashable {
  var text: String

  /// What `Note.content` holds in 2.0.0: `[{"text":"Buy milk."},{"text":"And bread."}]`.
  static func encoded(from text: String) throws -> Data {
    let paragraphs = text.components(separatedBy: "\n\n").map { Paragraph(text: $0) }
    return try JSONEncoder().encode(paragraphs)
  }
}
