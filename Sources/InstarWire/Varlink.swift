/// Messages of Varlink (https://varlink.org): JSON objects, each ended by a null byte.
public enum Varlink {
  /// Ends each message.
  public static let terminator: UInt8 = 0
  /// A call is short; a client that sends more is cut off.
  public static let callLimitBytes = 1 << 20

  /// The head of a call. Its parameters are read when the method is known.
  public struct Call: Sendable, Codable, Hashable {
    /// "io.instar.Manager.GetStatus".
    public var method: String
    /// Whether the client takes more than one reply.
    public var more: Bool?
    /// Whether the client wants no reply.
    public var oneway: Bool?
  }

  /// A call with its parameters, as a client sends it.
  public struct CallWithParameters<Parameters: Codable>: Codable {
    /// "io.instar.Manager.GetStatus".
    public var method: String
    /// The parameters of the method; those of a method that needs none can be left out.
    public var parameters: Parameters?
    /// Whether the client takes more than one reply.
    public var more: Bool?

    /// A call for one reply, or with `more` for several.
    public init(method: String, parameters: Parameters, more: Bool? = nil) {
      self.method = method
      self.parameters = parameters
      self.more = more
    }
  }

  /// A reply: parameters, or an error with its own.
  public struct Reply<Parameters: Codable>: Codable {
    /// What the method returns, or the parameters of the error.
    public var parameters: Parameters
    /// Whether more replies follow.
    public var continues: Bool?
    /// "io.instar.Manager.StoreNotFound"; left out on success.
    public var error: String?

    /// A reply without an error.
    public init(_ parameters: Parameters, continues: Bool? = nil, error: String? = nil) {
      self.parameters = parameters
      self.continues = continues
      self.error = error
    }
  }

  /// What tells replies and errors apart.
  public struct ReplyHead: Codable {
    /// Whether more replies follow.
    public var continues: Bool?
    /// The name of the error; left out on success.
    public var error: String?
  }

  /// The parameters of a method without any.
  public struct Nothing: Sendable, Codable, Hashable {
    /// No parameters.
    public init() {}
  }
}
