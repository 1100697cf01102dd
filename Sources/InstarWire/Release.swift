/// The release that all programs of one build belong to.
public enum Release {
  /// Its number; the newest entry of CHANGELOG.md.
  public static let version = "0.1.0"
}
