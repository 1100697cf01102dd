public import Foundation

/// Methods that apps use on Apple's platforms, where `NSObject` has them. Plans keep values in `UserDefaults` between
/// `willMigrate` and `didMigrate`.
extension UserDefaults {
  #if !canImport(Darwin)
    /// Sets the value of a key; the same as `set(_:forKey:)`.
    public func setValue(_ value: Any?, forKey key: String) { set(value, forKey: key) }

    /// Sets the value of a key; the same as `set(_:forKey:)`.
    public func setValue(_ value: Any?, forKeyPath key: String) { set(value, forKey: key) }

    /// Returns the value of a key; the same as `object(forKey:)`.
    public func value(forKey key: String) -> Any? { object(forKey: key) }

    /// Returns the value of a key; the same as `object(forKey:)`.
    public func value(forKeyPath key: String) -> Any? { object(forKey: key) }
  #endif
}
