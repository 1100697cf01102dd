import CInstar

/// The memory that the C library keeps for this process (mallopt(3), malloc_trim(3)).
public enum MemorySettings {
  /// Has threads share the arenas from which memory is taken. By default there are eight for each processor, and each
  /// keeps what one of its threads has used for a moment. Call it before other threads start.
  public static func shareArenas() { instar_limit_arenas(2) }

  /// Gives unused memory back to the kernel: after work that needed much for a moment.
  public static func returnUnused() { instar_trim_memory() }
}
