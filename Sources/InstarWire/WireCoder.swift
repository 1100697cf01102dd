public import Foundation
public import InstarSchema

/// Encodes and decodes messages between processes: JSON in UTF-8, one object per line.
public enum WireCoder {
  /// The longest line that is read, in bytes; a longer one ends the conversation.
  public static let lineLimitBytes = 16 << 20

  /// Returns a message as one line, with its newline.
  public static func line(_ message: some Encodable) throws(InstarError) -> Data {
    do {
      var data = try encoder().encode(message)
      data.append(0x0A)
      return data
    } catch {
      throw InstarError(
        .internalError, "cannot write a message", cause: String(describing: error))
    }
  }

  /// Reads one line.
  ///
  /// - Throws: `protocolViolation` if the line is not a message of this type, or has what only a later release knows.
  public static func message<Message: Decodable>(
    _ type: Message.Type, from line: Data
  ) throws(InstarError) -> Message {
    do {
      return try JSONDecoder().decode(type, from: line)
    } catch let error as InstarError {
      throw error
    } catch {
      let start = String(decoding: line.prefix(200), as: UTF8.self)
      throw InstarError(
        .protocolViolation, "cannot read a message of the other process",
        cause: "the other process sent a malformed message: \(start)",
        next: InstarError.adviceOnOtherVersion)
    }
  }

  /// The encoder of messages and of `--json`. Keys are sorted and slashes are not escaped, so equal values give equal
  /// text.
  public static func encoder(pretty: Bool = false) -> JSONEncoder {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    if pretty { encoder.outputFormatting.insert(.prettyPrinted) }
    return encoder
  }
}
