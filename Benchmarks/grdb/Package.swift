// swift-tools-version: 6.2
import PackageDescription

// A package of its own, so that Instar's build does not contain the benchmarks.
let package = Package(
  name: "grdb-peer",
  platforms: [.macOS(.v15)],
  dependencies: [.package(url: "https://github.com/groue/GRDB.swift", exact: "7.10.0")],
  targets: [
    .executableTarget(
      name: "grdb-peer", dependencies: [.product(name: "GRDB", package: "GRDB.swift")])
  ]
)
