// swift-tools-version: 6.2
import CompilerPluginSupport
import PackageDescription

/// What every Swift target of the package is compiled with.
let features: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
]

let strict = features + [.treatAllWarnings(as: .error)]

/// The modules that a plugin compiles against also yield a `.swiftinterface`: plugins are built by
/// another `swiftc` invocation than the SDK, and must not see GRDB or any C module behind it.
///
/// Their warnings are not errors, because one cannot be avoided: Foundation on Linux is not built for library
/// evolution, and every public import of it warns. `packaging/test` fails on any other warning.
let publicModule: [SwiftSetting] =
  features + [
    .unsafeFlags([
      "-enable-library-evolution", "-emit-module-interface",
      "-no-verify-emitted-module-interface",
    ])
  ]

/// How Debian hardens C. Swift checks bounds by itself, and `packaging/release-build` binds all symbols at start.
let hardened: [CSetting] = [
  .unsafeFlags(["-fstack-protector-strong"]),
  .define("_FORTIFY_SOURCE", to: "2", .when(configuration: .release)),
]

let package = Package(
  name: "instar",
  platforms: [.macOS(.v15)],
  products: [
    .library(name: "Instar", type: .dynamic, targets: ["Instar", "InstarTesting"]),
    .executable(name: "instard", targets: ["instard"]),
    .executable(name: "instarctl", targets: ["instarctl"]),
    .executable(name: "instar-keeper", targets: ["instar-keeper"]),
    .executable(name: "instar-worker", targets: ["instar-worker"]),
    .executable(name: "instar-hook", targets: ["instar-hook"]),
    .executable(name: "instar-coordinator", targets: ["instar-coordinator"]),
  ],
  dependencies: [
    .package(url: "https://github.com/groue/GRDB.swift", exact: "7.10.0"),
    .package(url: "https://github.com/apple/swift-argument-parser", exact: "1.8.2"),
    .package(url: "https://github.com/apple/swift-collections", exact: "1.6.0"),
    .package(url: "https://github.com/apple/swift-log", exact: "1.16.2"),
    .package(url: "https://github.com/apple/swift-metrics", exact: "2.13.0"),
    .package(url: "https://github.com/swiftlang/swift-syntax", exact: "603.0.1"),
    .package(url: "https://github.com/jpsim/Yams", exact: "6.2.2"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", exact: "2.13.0"),
    .package(url: "https://github.com/apple/swift-crypto", exact: "4.5.2"),
  ],
  targets: [
    // C: what Swift cannot import, or what must run before Swift does.
    .target(
      name: "CSystemd",
      linkerSettings: [.linkedLibrary(":libsystemd.so.0")]),
    .target(
      name: "CDigest",
      linkerSettings: [.linkedLibrary(":libmd.so.0"), .linkedLibrary(":libxxhash.so.0")]),
    .target(
      name: "CCompression",
      linkerSettings: [.linkedLibrary(":libz.so.1"), .linkedLibrary(":libzstd.so.1")]),
    .target(
      name: "CCurl",
      linkerSettings: [.linkedLibrary(":libcurl.so.4")]),
    .target(name: "CInstar", cSettings: hardened),
    .target(name: "CDatabase", cSettings: hardened),

    // Values.
    .target(name: "InstarSchema", swiftSettings: publicModule),
    .target(name: "InstarWire", dependencies: ["InstarSchema"], swiftSettings: strict),

    .target(name: "InstarSource", dependencies: ["InstarSchema"], swiftSettings: strict),

    // The SDK.
    .macro(
      name: "InstarMacros",
      dependencies: [
        .product(name: "SwiftCompilerPlugin", package: "swift-syntax"),
        .product(name: "SwiftDiagnostics", package: "swift-syntax"),
        .product(name: "SwiftIfConfig", package: "swift-syntax"),
        .product(name: "SwiftOperators", package: "swift-syntax"),
        .product(name: "SwiftParser", package: "swift-syntax"),
        .product(name: "SwiftSyntax", package: "swift-syntax"),
        .product(name: "SwiftSyntaxBuilder", package: "swift-syntax"),
        .product(name: "SwiftSyntaxMacroExpansion", package: "swift-syntax"),
        .product(name: "SwiftSyntaxMacros", package: "swift-syntax"),
      ],
      swiftSettings: strict),
    .target(
      name: "InstarStore",
      dependencies: [
        "CDatabase", "CDigest", "CCompression", "InstarSchema",
        .product(name: "GRDB", package: "GRDB.swift"),
        .product(name: "GRDBSQLite", package: "GRDB.swift"),
      ],
      swiftSettings: strict),
    .target(
      name: "InstarModel",
      dependencies: [
        "CInstar", "InstarMacros", "InstarSchema", "InstarStore",
        .product(name: "GRDB", package: "GRDB.swift"),
        .product(name: "GRDBSQLite", package: "GRDB.swift"),
      ],
      swiftSettings: publicModule),
    .target(name: "InstarText", dependencies: ["InstarSchema"], swiftSettings: publicModule),
    .target(
      name: "InstarChange",
      dependencies: ["InstarSchema", "InstarStore", "InstarWire"],
      swiftSettings: strict),
    .target(
      name: "InstarEngine",
      dependencies: ["InstarChange", "InstarModel", "InstarSchema", "InstarStore", "InstarWire"],
      swiftSettings: strict),
    .target(
      name: "InstarWorker",
      dependencies: [
        "InstarChange", "InstarEngine", "InstarLinux", "InstarModel", "InstarSchema", "InstarStore",
        "InstarWire",
      ],
      swiftSettings: strict),
    .target(
      name: "Instar",
      dependencies: [
        "InstarChange", "InstarEngine", "InstarKeeper", "InstarLinux", "InstarModel",
        "InstarSchema", "InstarStore", "InstarSupervisor", "InstarText", "InstarWire",
        // Not imported: exports instar_worker_main from libInstar.so.
        "InstarWorker",
        .product(name: "GRDB", package: "GRDB.swift"),
      ],
      swiftSettings: publicModule,
      // Plugins name libInstar.so as needed. The worker has loaded it before, by its path: only by
      // its soname the loader knows it for the same.
      linkerSettings: [.unsafeFlags(["-Xlinker", "-soname=libInstar.so"])]),

    // A part of libInstar.so, of which a process must have only one: a library of its own would contain the SDK again.
    .target(
      name: "InstarTesting",
      dependencies: [
        "Instar", "InstarLinux", "InstarStore", "InstarWire",
        .product(name: "GRDB", package: "GRDB.swift"),
      ],
      swiftSettings: publicModule),

    // Around a run.
    .target(
      name: "InstarLinux",
      dependencies: ["CInstar", "InstarSchema"],
      swiftSettings: strict),
    // Apart from InstarLinux: libInstar.so, which apps load, must not need libsystemd.
    .target(
      name: "InstarSystemd",
      dependencies: ["CSystemd", "InstarSchema"],
      swiftSettings: strict),
    .target(
      name: "InstarKeeper",
      dependencies: [
        "CInstar", "InstarChange", "InstarLinux", "InstarSchema", "InstarStore", "InstarWire",
        .product(name: "GRDB", package: "GRDB.swift"),
        .product(name: "GRDBSQLite", package: "GRDB.swift"),
      ],
      swiftSettings: strict),
    // Apart from InstarLinux: only the programs that sign or load plugins need cryptography.
    .target(
      name: "InstarSignatures",
      dependencies: ["InstarSchema", .product(name: "Crypto", package: "swift-crypto")],
      swiftSettings: strict),
    .target(
      name: "InstarSupervisor",
      dependencies: ["InstarLinux", "InstarSchema", "InstarWire"],
      swiftSettings: strict),
    .target(
      name: "InstarConfiguration",
      dependencies: [
        "InstarLinux", "InstarSchema", "InstarWire",
        .product(name: "Yams", package: "Yams"),
      ],
      swiftSettings: strict),
    // The client's end of the control socket.
    .target(
      name: "InstarControl",
      dependencies: ["InstarLinux", "InstarSchema", "InstarWire"],
      swiftSettings: strict),
    .target(
      name: "InstarHooks",
      dependencies: ["InstarLinux", "InstarSchema", "InstarWire"],
      swiftSettings: strict),
    .target(
      name: "InstarDaemon",
      dependencies: [
        "InstarConfiguration", "InstarHooks", "InstarLinux", "InstarSchema", "InstarSupervisor",
        "InstarSystemd",
        "InstarWire",
        .product(name: "CoreMetrics", package: "swift-metrics"),
        .product(name: "DequeModule", package: "swift-collections"),
        .product(name: "HashTreeCollections", package: "swift-collections"),
        .product(name: "HeapModule", package: "swift-collections"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
      ],
      swiftSettings: strict),

    // Apart from InstarDaemon: only instar-coordinator, a program of an own package, needs a network.
    .target(
      name: "InstarCoordinator",
      dependencies: [
        "CCurl", "InstarConfiguration", "InstarControl", "InstarLinux", "InstarSchema",
        "InstarWire",
      ],
      swiftSettings: strict),

    // Executables: wiring only.
    .executableTarget(
      name: "instard",
      dependencies: [
        "InstarConfiguration", "InstarDaemon", "InstarLinux", "InstarSchema", "InstarSystemd",
        "InstarWire",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
        .product(name: "UnixSignals", package: "swift-service-lifecycle"),
      ],
      swiftSettings: strict),
    .executableTarget(
      name: "instarctl",
      dependencies: [
        "InstarConfiguration", "InstarControl", "InstarHooks", "InstarLinux", "InstarSchema",
        "InstarSignatures", "InstarSource", "InstarSupervisor", "InstarWire",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      swiftSettings: strict),
    .executableTarget(
      name: "instar-keeper",
      dependencies: ["InstarKeeper", "InstarLinux", "InstarSchema", "InstarSignatures"],
      swiftSettings: strict),
    .executableTarget(name: "instar-worker", dependencies: ["CInstar"]),
    .executableTarget(
      name: "instar-hook",
      dependencies: [
        "InstarConfiguration", "InstarHooks", "InstarLinux", "InstarSchema", "InstarSystemd",
      ],
      swiftSettings: strict),

    .executableTarget(
      name: "instar-coordinator",
      dependencies: [
        "InstarConfiguration", "InstarCoordinator", "InstarLinux", "InstarSchema",
        "InstarSystemd", "InstarWire",
      ],
      swiftSettings: strict),

    // Not in the packages.
    .executableTarget(
      name: "rollout-simulation",
      dependencies: [
        "InstarConfiguration", "InstarCoordinator", "InstarSchema", "InstarWire",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      path: "Benchmarks/rollout-simulation",
      swiftSettings: strict),

    // Tests.
    .target(
      name: "InstarTestSupport",
      dependencies: ["InstarLinux", "InstarSchema", .product(name: "GRDB", package: "GRDB.swift")],
      path: "Tests/InstarTestSupport",
      swiftSettings: strict),
    .testTarget(
      name: "InstarSchemaTests",
      dependencies: ["InstarSchema"],
      swiftSettings: strict),
    .testTarget(
      name: "InstarWireTests",
      dependencies: ["InstarSchema", "InstarTestSupport", "InstarWire"],
      swiftSettings: strict),
    .testTarget(
      name: "InstarSupervisorTests",
      dependencies: [
        "InstarLinux", "InstarSchema", "InstarSupervisor", "InstarTestSupport", "InstarWire",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "InstarSourceTests",
      dependencies: ["InstarSchema", "InstarSource"],
      swiftSettings: strict),
    .testTarget(
      name: "InstarTextTests",
      dependencies: ["InstarSchema", "InstarText"],
      swiftSettings: strict),
    // The compiler plugin's sources as an ordinary module. SwiftPM builds the tests of a `.macro` target, and with them
    // all tests and modules of the package, a second time for the host.
    .target(
      name: "InstarMacroExpansion",
      dependencies: [
        .product(name: "SwiftDiagnostics", package: "swift-syntax"),
        .product(name: "SwiftIfConfig", package: "swift-syntax"),
        .product(name: "SwiftOperators", package: "swift-syntax"),
        .product(name: "SwiftParser", package: "swift-syntax"),
        .product(name: "SwiftSyntax", package: "swift-syntax"),
        .product(name: "SwiftSyntaxBuilder", package: "swift-syntax"),
        .product(name: "SwiftSyntaxMacroExpansion", package: "swift-syntax"),
        .product(name: "SwiftSyntaxMacros", package: "swift-syntax"),
      ],
      path: "Tests/InstarMacroExpansion",
      exclude: ["InstarMacrosPlugin.swift"],
      swiftSettings: strict),
    .testTarget(
      name: "InstarMacrosTests",
      dependencies: [
        "InstarMacroExpansion",
        .product(name: "SwiftDiagnostics", package: "swift-syntax"),
        .product(name: "SwiftParser", package: "swift-syntax"),
        .product(name: "SwiftSyntax", package: "swift-syntax"),
        .product(name: "SwiftSyntaxMacroExpansion", package: "swift-syntax"),
        .product(name: "SwiftSyntaxMacrosGenericTestSupport", package: "swift-syntax"),
      ],
      swiftSettings: strict),
    .testTarget(
      name: "InstarStoreTests",
      dependencies: [
        "InstarSchema", "InstarStore", "InstarTestSupport",
        .product(name: "GRDB", package: "GRDB.swift"),
      ],
      swiftSettings: strict),
    .testTarget(
      name: "InstarModelTests",
      dependencies: [
        "Instar", "InstarModel", "InstarSchema", "InstarStore", "InstarTestSupport",
        .product(name: "GRDB", package: "GRDB.swift"),
      ],
      swiftSettings: strict),
    .testTarget(
      name: "InstarEngineTests",
      dependencies: [
        "Instar", "InstarChange", "InstarEngine", "InstarModel", "InstarSchema", "InstarStore",
        "InstarSupervisor", "InstarTestSupport", "InstarWire",
        .product(name: "GRDB", package: "GRDB.swift"),
      ],
      swiftSettings: strict),
    .testTarget(
      name: "InstarTestingTests",
      dependencies: ["Instar", "InstarTestSupport", "InstarTesting"],
      swiftSettings: strict),
    .testTarget(
      name: "InstarLinuxTests",
      dependencies: [
        "InstarLinux", "InstarSchema", "InstarSystemd", "InstarTestSupport", "InstarWire",
      ],
      // C, compiled by the tests themselves.
      exclude: ["Fixtures"],
      swiftSettings: strict),
    .testTarget(
      name: "InstarKeeperTests",
      dependencies: [
        "InstarChange", "InstarKeeper", "InstarLinux", "InstarSchema", "InstarStore",
        "InstarTestSupport", "InstarWire",
        .product(name: "GRDB", package: "GRDB.swift"),
      ],
      swiftSettings: strict),
    .testTarget(
      name: "InstarConfigurationTests",
      dependencies: [
        "InstarConfiguration", "InstarLinux", "InstarSchema", "InstarTestSupport", "InstarWire",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "InstarHooksTests",
      dependencies: [
        "InstarHooks", "InstarLinux", "InstarSchema", "InstarTestSupport", "InstarWire",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "InstarCoordinatorTests",
      dependencies: [
        "InstarConfiguration", "InstarCoordinator", "InstarLinux", "InstarSchema",
        "InstarTestSupport", "InstarWire",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "InstarDaemonTests",
      dependencies: [
        "InstarConfiguration", "InstarControl", "InstarCoordinator", "InstarDaemon", "InstarHooks",
        "InstarLinux", "InstarSchema", "InstarSupervisor", "InstarTestSupport", "InstarWire",
        .product(name: "CoreMetrics", package: "swift-metrics"),
        .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: strict),
    .testTarget(
      name: "EndToEndTests",
      dependencies: [
        "Instar", "InstarKeeper", "InstarLinux", "InstarSchema", "InstarSource", "InstarStore",
        "InstarSupervisor",
        "InstarTestSupport",
        "InstarWire", "InstarWorker",
        .product(name: "GRDB", package: "GRDB.swift"),
      ],
      swiftSettings: strict),
  ],
  swiftLanguageModes: [.v6]
)
