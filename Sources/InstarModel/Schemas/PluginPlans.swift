/// The plans of a plugin, which its entry point returns to the worker.
public final class PluginPlans: Sendable {
  /// The types of the plans, in the order of `#InstarPlugin`.
  public let plans: [any SchemaMigrationPlan.Type]

  init(_ plans: [any SchemaMigrationPlan.Type]) { self.plans = plans }

  /// Returns a retained object with the plans, for the entry point that `#InstarPlugin` emits. `taking(_:)` releases
  /// it.
  public static func retained(
    _ plans: [any SchemaMigrationPlan.Type]
  ) -> UnsafeMutableRawPointer {
    Unmanaged.passRetained(PluginPlans(plans)).toOpaque()
  }

  /// Takes ownership of the object that a plugin's entry point returned. Plugin and worker share this class, and every
  /// other type of the SDK, because both use the same `libInstar.so`.
  public static func taking(_ pointer: UnsafeMutableRawPointer) -> PluginPlans {
    Unmanaged<PluginPlans>.fromOpaque(pointer).takeRetainedValue()
  }
}
