/// What a run does with a store that other processes use.
///
/// No policy overwrites what another process has committed.
public enum BusyPolicy: String, Sendable, Codable, Hashable, CaseIterable {
  /// Waits for the lock, for the time that the request allows, and keeps it for the whole run: no other process can
  /// write meanwhile.
  case wait
  /// Works on a copy while others write, and takes the lock for the cutover alone. If another process has committed
  /// since the copy, the run makes a new copy; after three of them it keeps the lock.
  case migrate
  /// Leaves a store alone while another process has it open.
  case skip
}
