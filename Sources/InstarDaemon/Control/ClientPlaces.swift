import InstarSchema

/// How many clients each user has at the control socket, and who may have one more.
struct ClientPlaces {
  static let limit = 128
  static let limitOfUser = 16
  /// Many users together cannot lock administrators out.
  static let placesOfAdmins = 32
  /// Nor can many administrators together lock root out.
  static let placesOfRoot = 16

  private var clients: [UInt32: Int] = [:]

  /// Gives the client a place.
  ///
  /// - Throws: `daemonNotReachable` where the user has too many clients, or all users together.
  mutating func admit(_ client: ControlClient) throws(InstarError) {
    let isRoot = client.user == 0
    let own = clients[client.user, default: 0]
    guard isRoot || own < Self.limitOfUser else {
      throw refusal("\(client.name) has \(own) connections to instard, as many as a user may have")
    }
    let all = clients.values.reduce(0, +)
    // instar-coordinator, which permits runs, is not an administrator.
    let isPrivileged = client.isAdmin || client.mayPermit
    let reserved = isRoot ? 0 : isPrivileged ? Self.placesOfRoot : Self.placesOfAdmins
    guard all < Self.limit - reserved else {
      throw refusal("instard has \(all) connections, as many as it takes")
    }
    clients[client.user] = own + 1
  }

  mutating func dismiss(_ client: ControlClient) {
    let left = clients[client.user, default: 1] - 1
    clients[client.user] = left > 0 ? left : nil
  }

  private func refusal(_ cause: String) -> InstarError {
    InstarError(
      .daemonNotReachable, "cannot ask instard", cause: cause,
      next:
        "end other programs that are connected to instard, or wait: it closes a connection that is silent for "
        + "\(Int(ControlSession.patience.inSeconds)) s")
  }
}
