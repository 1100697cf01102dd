import InstarConfiguration
import Testing

@Suite("Rollout settings")
struct RolloutSettingsTests {
  private func settings(canary: Int?, waves: [String]) -> RolloutSettings {
    var settings = RolloutSettings()
    settings.canary = canary.map { .count($0) }
    settings.waves = waves.compactMap(RolloutSettings.Share.init)
    return settings
  }

  @Test("the last wave is all stores, and shares are rounded up")
  func steps() {
    let steps = settings(canary: 1, waves: ["10%"]).steps
    #expect(steps.map { $0.stores(of: 15) } == [1, 2, 15])
    #expect(settings(canary: nil, waves: ["100%"]).steps.count == 1)
  }

  @Test("a share of failures is rounded down, and a share is at most 100% and not negative")
  func shares() {
    #expect(RolloutSettings.Share("0.5%")?.failures(of: 100) == 0)
    #expect(RolloutSettings.Share("101%") == nil && RolloutSettings.Share("-1") == nil)
  }
}
