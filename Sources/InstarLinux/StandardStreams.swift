import Glibc

/// Standard input, standard output and standard error.
public enum StandardStreams {
  /// Opens `/dev/null` for each that the caller of the program has closed.
  ///
  /// Otherwise the next file that the process opens gets its number, and messages go into that file. Call it before
  /// anything opens a file.
  public static func openMissing() {
    for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
      // It gets the lowest number that is free. Where it cannot be opened, nobody can be told.
      _ = open("/dev/null", O_RDWR)
    }
  }
}
