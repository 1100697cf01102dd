import Foundation

/// An error that code of a plan threw.
package struct ThrownError {
  private let error: any Error

  package init(_ error: any Error) { self.error = error }

  /// The error's description for people, if it has one.
  package var reason: String { (error as? any LocalizedError)?.errorDescription ?? "\(error)" }

  /// Whether it is one of the system or of Foundation.
  package var isOfSystem: Bool {
    [NSPOSIXErrorDomain, NSCocoaErrorDomain].contains((error as NSError).domain)
  }
}
