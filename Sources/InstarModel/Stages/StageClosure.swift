/// A closure of a stage, by the name that plans, errors and reports have for it.
package enum StageClosure: String {
  case willMigrate, didMigrate, bridge
}
