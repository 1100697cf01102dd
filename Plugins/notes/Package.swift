// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "notes",
  products: [
    .library(name: "Notes", type: .dynamic, targets: ["Notes"])
  ],
  dependencies: [
    .package(name: "instar", path: "../..")
  ],
  targets: [
    .target(name: "Notes", dependencies: [.product(name: "Instar", package: "instar")])
  ],
  // `static var versionIdentifier = …`, as SwiftData code has it, is an error in Swift 6 mode.
  swiftLanguageModes: [.v5]
)
