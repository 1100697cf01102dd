import Foundation

/// What etcd's JSON gateway takes and returns (https://etcd.io/docs/v3.4/dev-guide/api_grpc_gateway/): keys and values
/// in base64, numbers of 64 bits as text, and no field that is zero or empty.
enum EtcdMessage {
  /// A number of 64 bits.
  struct Number: Codable, Hashable {
    var value: Int64

    init(_ value: Int64) { self.value = value }

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      let text = try container.decode(String.self)
      guard let value = Int64(text) else {
        throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a number")
      }
      self.value = value
    }

    func encode(to encoder: any Encoder) throws {
      var container = encoder.singleValueContainer()
      try container.encode("\(value)")
    }
  }

  struct Header: Codable {
    var revision: Number?
  }

  struct KeyValue: Codable {
    var key: Data
    var value: Data?
    var mod_revision: Number?
    var lease: Number?
  }

  struct RangeRequest: Codable {
    var key: Data
    var range_end: Data?
    var limit: Number?
    var min_mod_revision: Number?
    var keys_only: Bool?
    var count_only: Bool?
    var revision: Number?
  }

  struct RangeResponse: Codable {
    var header: Header?
    var kvs: [KeyValue]?
    var count: Number?
    var more: Bool?
  }

  struct PutRequest: Codable {
    var key: Data
    var value: Data
    var lease: Number?
  }

  struct DeleteRequest: Codable {
    var key: Data
    var range_end: Data?
  }

  struct Compare: Codable {
    var key: Data
    var target: String
    var result = "EQUAL"
    var version: Number?
    var mod_revision: Number?
    var lease: Number?
  }

  struct Operation: Codable {
    var request_put: PutRequest?
    var request_delete_range: DeleteRequest?
  }

  struct TransactionRequest: Codable {
    var compare: [Compare]
    var success: [Operation]
  }

  struct TransactionResponse: Codable {
    var header: Header?
    var succeeded: Bool?
  }

  /// A request about a lease, and its reply.
  struct Lease: Codable {
    var ID: Number?
    var TTL: Number?
  }

  /// The replies of a stream come one by one, each as a result.
  struct Streamed<Result: Codable>: Codable {
    var result: Result?
    var error: Failure?
  }

  struct WatchCreation: Codable {
    var key: Data
    var range_end: Data?
    var start_revision: Number?
  }

  struct WatchRequest: Codable {
    var create_request: WatchCreation
  }

  struct WatchResponse: Codable {
    struct Event: Codable {}
    var events: [Event]?
    var canceled: Bool?
  }

  /// An error. Its text is in `error` or in `message`, by the version of etcd.
  struct Failure: Codable {
    var error: String?
    var message: String?
    var code: Int?
    var grpc_code: Int?

    var text: String { message ?? error ?? "etcd gave no reason" }
  }

  struct Nothing: Codable {}
}
