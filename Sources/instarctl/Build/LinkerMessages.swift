import Foundation

/// Tells that Swift cannot compile or link because packages are missing that swift.org lists for it.
///
/// A computer without them can install Swift, so their absence shows only here, in messages about files of C.
struct LinkerMessages {
  let cause: String
  let next: String

  /// `nil` if the compiler failed for another reason.
  init?(compilerOutput: String) {
    let signs = [
      "unable to execute command: posix_spawn failed", "invalid linker name", "crtbeginS.o",
      "crti.o", "cannot find -lc", "cannot find -lgcc", "could not build C module 'CDispatch'",
      "could not build C module 'SwiftGlibc'",
    ]
    guard signs.contains(where: compilerOutput.contains) else { return nil }
    cause = "swiftc cannot find the linker, or the files of the C library"
    next =
      "on Debian run: apt-get install --no-install-recommends binutils libc6-dev \(Self.compilerFiles)"
  }

  /// The package of GCC with the objects that begin and end a library. Its name has GCC's version.
  private static var compilerFiles: String {
    let version = try? String(contentsOfFile: "/etc/debian_version", encoding: .utf8)
    return version?.hasPrefix("12") == true ? "libgcc-12-dev" : "libgcc-14-dev"
  }
}
