import Foundation
public import InstarLinux

extension ChildProcess {
  /// Sends SIGTERM to the process group, and SIGKILL if the child has not ended after `grace`.
  @discardableResult
  public func terminate(grace: Duration) -> Termination {
    kill(SIGTERM)
    if let ended = try? wait(deadline: .now + grace) { return ended }
    kill(SIGKILL)
    return (try? wait()) ?? .signaled(SIGKILL)
  }
}
