/// What a plugin hands to the worker that loaded it: its plans.
public final class PluginPlans: Sendable {
  public let plans: [any SchemaMigrationPlan.Type]

  init(_ plans: [any SchemaMigrationPlan.Type]) { self.plans = plans }

  /// Called by the entry point that `#InstarPlugin` emits. The caller owns the object (`taking(_:)`).
  public static func retained(
    _ plans: [any SchemaMigrationPlan.Type]
  ) -> UnsafeMutableRawPointer {
    Unmanaged.passRetained(PluginPlans(plans)).toOpaque()
  }

  /// Takes the object that a plugin's entry point returned. Plugin and worker share one copy of this class, and of every
  /// other type of the SDK, because both are linked to the same `libInstar.so`.
  public static func taking(_ pointer: UnsafeMutableRawPointer) -> PluginPlans {
    Unmanaged<PluginPlans>.fromOpaque(pointer).takeRetainedValue()
  }
}
