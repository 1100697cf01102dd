/// The release of this build.
public enum Release {
  /// The release number, as in the newest entry of CHANGELOG.md.
  public static let version = "0.1.0"
}
