extension RunReport {
  /// The same report, with all numbers in range: it comes from a keeper, which a store may have taken over, or from a
  /// ledger with such a report.
  package var plausible: RunReport {
    var plausible = self
    plausible.startedAt = Plausible.time(startedAt)
    plausible.durationMicroseconds = Plausible.duration(durationMicroseconds)
    for index in stages.indices {
      plausible.stages[index].durationMicroseconds = Plausible.duration(
        stages[index].durationMicroseconds)
    }
    for (index, entity) in entities.enumerated() {
      plausible.entities[index].rowsBefore = entity.rowsBefore.map(Plausible.count)
      plausible.entities[index].rowsAfter = entity.rowsAfter.map(Plausible.count)
    }
    for (index, relationship) in relationships.enumerated() {
      plausible.relationships[index].linksBefore = relationship.linksBefore.map(Plausible.count)
      plausible.relationships[index].linksAfter = relationship.linksAfter.map(Plausible.count)
    }
    plausible.bytes = bytes.map(Plausible.count)
    plausible.rehearsal?.cloneBytes = rehearsal?.cloneBytes.map(Plausible.count)
    plausible.rehearsal?.neededBytes = rehearsal?.neededBytes.map(Plausible.count)
    plausible.manifest = manifest?.plausible
    return plausible
  }
}

extension BackupManifest {
  /// The same manifest, with all numbers in range: the owner of a store may write anything into its folder.
  package var plausible: BackupManifest {
    var plausible = self
    plausible.madeAt = Plausible.time(madeAt)
    plausible.bytes = Plausible.count(bytes)
    plausible.externalFiles = Plausible.count(externalFiles)
    plausible.externalBytes = externalBytes.map(Plausible.count)
    return plausible
  }
}

private enum Plausible {
  /// More than SQLite can store in a file, and few enough that thousands of such numbers can be added.
  static func count<Number: FixedWidthInteger>(_ number: Number) -> Number {
    min(max(number, 0), 1 << 50)
  }

  /// At most some thirty years.
  static func duration(_ microseconds: Int64) -> Int64 {
    min(max(microseconds, 0), 1_000_000_000_000_000)
  }

  /// A time from 1970 to the year 5138, in seconds since 1970.
  static func time(_ seconds: Double) -> Double { min(max(seconds, 0), 1e11) }
}
