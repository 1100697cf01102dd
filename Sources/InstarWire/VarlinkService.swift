/// The errors and methods of `org.varlink.service`, which each service answers.
public enum VarlinkService {
  /// The name of the interface.
  public static let interface = "org.varlink.service"

  /// What `GetInfo` returns.
  public struct Info: Sendable, Codable, Hashable {
    /// Who makes the service.
    public var vendor: String
    /// The name of the service.
    public var product: String
    /// The release.
    public var version: String
    /// A page about it.
    public var url: String
    /// The interfaces that the service answers.
    public var interfaces: [String]

    package init(version: String, interfaces: [String]) {
      vendor = "Instar"
      product = "instard"
      self.version = version
      url = "man:instard(8)"
      self.interfaces = interfaces
    }
  }

  /// The parameters of `GetInterfaceDescription`.
  public struct InterfaceName: Sendable, Codable, Hashable {
    /// The name of the interface.
    public var interface: String
  }

  /// What `GetInterfaceDescription` returns.
  public struct InterfaceDescription: Sendable, Codable, Hashable {
    /// The interface in Varlink's language.
    public var description: String

    package init(description: String) { self.description = description }
  }

  /// The interface itself, as Varlink defines it (https://varlink.org/Service).
  public static let description = """
    # The Varlink Service Interface is provided by every varlink service. It describes the service and the
    # interfaces it implements.
    interface org.varlink.service

    # Get a list of all the interfaces a service provides and information about the implementation.
    method GetInfo() -> (
      vendor: string,
      product: string,
      version: string,
      url: string,
      interfaces: []string
    )

    # Get the description of an interface that is implemented by this service.
    method GetInterfaceDescription(interface: string) -> (description: string)

    # The requested interface was not found.
    error InterfaceNotFound (interface: string)

    # The requested method was not found
    error MethodNotFound (method: string)

    # The interface defines the requested method, but the service does not implement it.
    error MethodNotImplemented (method: string)

    # One of the passed parameters is invalid.
    error InvalidParameter (parameter: string)

    # Client is denied access
    error PermissionDenied ()

    # Method is expected to be called with 'more' set to true, but wasn't
    error ExpectedMore ()

    """
}
