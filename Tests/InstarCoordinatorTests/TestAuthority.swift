import Foundation
import InstarTestSupport

/// An authority that issues certificates in the files of a folder, made by openssl.
struct TestAuthority {
  private let folder: TemporaryFolder
  /// The certificate of the authority.
  let path: String

  init() throws {
    folder = try TemporaryFolder()
    path = folder.path("authority.pem")
    try Self.openssl(
      ["req", "-x509"] + Self.newKey + ["-nodes", "-days", "2", "-subj", "/CN=authority"]
        + ["-keyout", folder.path("authority.key"), "-out", path])
  }

  private static let newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]

  /// Issues a certificate for a subject such as "IP:127.0.0.1", as a server and as a client.
  ///
  /// - Returns: The files with the certificate and its key. Their names contain `name`.
  func issue(_ name: String, for subject: String) throws -> (certificate: String, key: String) {
    let key = folder.path("\(name).key"), certificate = folder.path("\(name).pem")
    let request = folder.path("\(name).csr")
    try Self.openssl(
      ["req"] + Self.newKey + ["-nodes", "-subj", "/CN=\(name)", "-keyout", key, "-out", request])
    let uses = try folder.file(
      "\(name).ext",
      Data("subjectAltName=\(subject)\nextendedKeyUsage=serverAuth,clientAuth\n".utf8))
    try Self.openssl(
      ["x509", "-req", "-in", request, "-CA", path, "-CAkey", folder.path("authority.key")]
        + ["-CAcreateserial", "-days", "2", "-extfile", uses, "-out", certificate])
    return (certificate, key)
  }

  static func openssl(_ arguments: [String]) throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/openssl")
    process.arguments = arguments
    process.standardError = FileHandle.nullDevice
    try process.run()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else { throw CocoaError(.executableLoad) }
  }
}
