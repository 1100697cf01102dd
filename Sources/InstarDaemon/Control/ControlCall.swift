import Foundation
import InstarWire

/// One call of a client of the control socket. Its parameters are checked here, before anybody reads them.
struct ControlCall {
  private let line: Data
  /// The name of the method, with that of its interface.
  let method: String
  /// Whether the client takes several replies.
  let takesMore: Bool
  /// Whether the client wants no reply.
  let isOneway: Bool

  /// - Throws: where the line is not a call.
  init(_ line: Data) throws {
    let call = try WireCoder.message(Varlink.Call.self, from: line)
    self.line = line
    method = call.method
    takesMore = call.more == true
    isOneway = call.oneway == true
  }

  /// The method of `io.instar.Manager` that is called; `nil` for a method of another interface, or none.
  var managerMethod: Manager.Method? {
    Manager.Method.allCases.first { $0.qualifiedName == method }
  }

  /// An error of Varlink's own, with which a call is answered.
  struct Refusal: Error {
    var error: String
    var parameters: [String: String] = [:]

    static func invalid(parameter: String) -> Refusal {
      Refusal(error: "InvalidParameter", parameters: ["parameter": parameter])
    }
  }

  /// Refuses a call whose client takes only one reply.
  func requireMore() throws(Refusal) {
    guard takesMore else { throw Refusal(error: "ExpectedMore") }
  }

  /// Decodes the parameters.
  ///
  /// - Throws: `InvalidParameter`, with the name of the parameter that does not decode or has a null byte.
  func parameters<Parameters: Codable>() throws(Refusal) -> Parameters {
    let parameters: Parameters
    do {
      let call = try JSONDecoder().decode(Varlink.CallWithParameters<Parameters>.self, from: line)
      parameters =
        try call.parameters ?? JSONDecoder().decode(Parameters.self, from: Data("{}".utf8))
    } catch {
      throw Refusal.invalid(parameter: parameter(refusedWith: error))
    }
    if let name = parameter(where: \.hasNullByte) {
      throw Refusal.invalid(parameter: name)
    }
    return parameters
  }

  /// A parameter that the decoder refuses without naming it, or accepts although the daemon must not.
  private struct DoubtfulValue: Decodable {
    /// Whether it is or has a text with a null byte, which would end the name of a file.
    var hasNullByte = false
    /// Whether it is a number that is too large, or not a whole one.
    var isUnfit = false

    init(from decoder: any Decoder) throws {
      let value = try decoder.singleValueContainer()
      let text = try? value.decode(String.self)
      if let texts = text.map({ [$0] }) ?? (try? value.decode([String].self)) {
        hasNullByte = texts.contains { $0.utf8.contains(0) }
        return
      }
      do {
        _ = try value.decode(Int.self)
      } catch DecodingError.typeMismatch {
        // Another type, whose place the decoder names.
      } catch DecodingError.valueNotFound {
        // A null.
      } catch {
        isUnfit = true
      }
    }
  }

  private struct DoubtfulCall: Decodable {
    var parameters: [String: DoubtfulValue]?
  }

  /// The first parameter, by name, whose value is refused.
  private func parameter(where isRefused: (DoubtfulValue) -> Bool) -> String? {
    // Where this fails too, no single parameter is to blame: the caller names all together.
    let call = try? JSONDecoder().decode(DoubtfulCall.self, from: line)
    return call?.parameters?.filter { isRefused($0.value) }.keys.min()
  }

  /// The name of the parameter that cannot be decoded, such as "stores"; "parameters" for all together.
  private func parameter(refusedWith error: any Error) -> String {
    let path: [any CodingKey] =
      switch error as? DecodingError {
      case .keyNotFound(let key, let context): context.codingPath + [key]
      case .typeMismatch(_, let context), .valueNotFound(_, let context),
        .dataCorrupted(let context):
        context.codingPath
      default: []
      }
    return path.first { $0.stringValue != "parameters" }?.stringValue
      ?? parameter(where: \.isUnfit) ?? "parameters"
  }
}

extension Manager.Method {
  /// Whether instard refuses a client that takes only one reply.
  var needsMore: Bool { [.listStores, .history, .monitor].contains(self) }
}
