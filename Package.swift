// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "TokenService",
    platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
    products: [
        .library(name: "AccessTokens", targets: ["AccessTokens"]),
        .library(name: "AccessTokensDispatch", targets: ["AccessTokensDispatch"]),
        .library(name: "AccessTokensEtcd", targets: ["AccessTokensEtcd"]),
        .library(name: "AccessTokensFiles", targets: ["AccessTokensFiles"]),
        .library(name: "AccessTokensKeys", targets: ["AccessTokensKeys"]),
        .library(name: "AccessTokensOAuth", targets: ["AccessTokensOAuth"]),
        .library(name: "AccessTokensSharedFiles", targets: ["AccessTokensSharedFiles"]),
        .library(name: "AccessTokensSharing", targets: ["AccessTokensSharing"]),
        .library(name: "DataLoading", targets: ["DataLoading"]),
        .library(name: "AccessTokensTesting", targets: ["AccessTokensTesting"]),
        .library(name: "Interleavings", targets: ["Interleavings"]),
        .library(name: "InterleavingsTesting", targets: ["InterleavingsTesting"]),
        .library(name: "InterleavingsEverything", targets: ["InterleavingsEverything"]),
    ],
    targets: [
        // What several modules share and no user sees: everything in it is `package`.
        .target(name: "TokenServiceConcurrency"),
        .target(name: "TokenServiceHTTP", dependencies: ["TokenServiceConcurrency"]),
        .target(name: "AccessTokens", dependencies: ["TokenServiceConcurrency"]),
        .target(name: "AccessTokensDispatch", dependencies: ["AccessTokens", "TokenServiceConcurrency"]),
        .target(name: "AccessTokensKeys", dependencies: ["AccessTokens", "TokenServiceConcurrency"]),
        .target(
            name: "AccessTokensSharing", dependencies: ["AccessTokens", "AccessTokensKeys", "TokenServiceConcurrency"]),
        .target(
            name: "AccessTokensEtcd",
            dependencies: ["AccessTokens", "AccessTokensSharing", "TokenServiceConcurrency", "TokenServiceHTTP"]),
        .target(name: "AccessTokensFiles", dependencies: ["AccessTokens", "TokenServiceConcurrency"]),
        .target(
            name: "AccessTokensSharedFiles",
            dependencies: [
                "AccessTokens", "AccessTokensFiles", "AccessTokensKeys", "AccessTokensSharing", "TokenServiceConcurrency",
            ]),
        .target(name: "AccessTokensOAuth", dependencies: ["AccessTokens", "TokenServiceHTTP"]),
        .target(name: "DataLoading", dependencies: ["AccessTokens", "TokenServiceConcurrency", "TokenServiceHTTP"]),
        .target(
            name: "AccessTokensTesting",
            dependencies: [
                "AccessTokens", "AccessTokensDispatch", "AccessTokensSharing", "Interleavings",
                "TokenServiceConcurrency",
            ]),
        .target(name: "Interleavings", dependencies: ["TokenServiceConcurrency"]),
        .target(name: "InterleavingsTesting", dependencies: ["Interleavings"]),
        // Functions of the runtime, replaced so that all code can be explored; a program that links neither keeps its runtime.
        .target(name: "RuntimeDoors"),
        .target(
            name: "InterleavingsEverything", dependencies: ["Interleavings", "RuntimeDoors", "TokenServiceConcurrency"]),
        .target(
            name: "RaceGallery",
            dependencies: [
                "AccessTokens", "AccessTokensDispatch", "AccessTokensKeys", "AccessTokensSharing",
                "AccessTokensTesting", "Interleavings", "TokenServiceConcurrency",
            ]),
        .executableTarget(
            name: "race-lab",
            dependencies: [
                "AccessTokens", "AccessTokensDispatch", "AccessTokensEtcd", "AccessTokensFiles", "AccessTokensKeys",
                "AccessTokensOAuth", "AccessTokensSharedFiles", "AccessTokensSharing", "AccessTokensTesting", "Interleavings",
                "LoopbackServers", "RaceGallery", "TokenServiceConcurrency",
            ]),
        // What the tests do every day, and what in CI.
        .target(name: "TestBudgets"),
        // Raw servers on the loopback interface, right or wrong, that test targets and the sample share.
        .target(name: "LoopbackServers"),
        // The second article's example; of the package it uses what is public, and a server to talk to.
        .executableTarget(
            name: "movie-screens",
            dependencies: ["AccessTokens", "AccessTokensOAuth", "DataLoading", "LoopbackServers", "TokenServiceConcurrency"]),
        // Measures what everything above costs; counts allocations by standing in front of malloc.
        .target(name: "AllocationCounter", path: "Benchmarks/AllocationCounter"),
        .executableTarget(name: "first-token", dependencies: ["AccessTokens"], path: "Benchmarks/first-token"),
        .executableTarget(name: "empty-program", path: "Benchmarks/empty-program"),
        .executableTarget(name: "driven", dependencies: ["Interleavings", "InterleavingsEverything"], path: "Benchmarks/driven"),
        .target(
            name: "BenchmarkSubjects", dependencies: ["AccessTokens", "AccessTokensDispatch", "AccessTokensKeys", "RaceGallery"],
            path: "Benchmarks/Subjects"),
        // Does one thing so many times, for a tool that counts instructions; links no Foundation but its essentials.
        .executableTarget(
            name: "instructions",
            dependencies: ["AccessTokens", "AccessTokensDispatch", "AccessTokensKeys", "BenchmarkSubjects", "RaceGallery"],
            path: "Benchmarks/instructions"),
        .executableTarget(
            name: "Benchmarks",
            dependencies: [
                "AccessTokens", "AccessTokensDispatch", "AccessTokensKeys", "AccessTokensTesting", "AllocationCounter",
                "BenchmarkSubjects", "Interleavings", "RaceGallery", "first-token", "empty-program",
            ],
            path: "Benchmarks/Benchmarks"),
        .testTarget(
            name: "TokenServiceConcurrencyTests", dependencies: ["TokenServiceConcurrency"],
            path: "Tests/Units/TokenServiceConcurrencyTests"),
        .testTarget(
            name: "TokenServiceHTTPTests",
            dependencies: ["LoopbackServers", "TestBudgets", "TokenServiceConcurrency", "TokenServiceHTTP"],
            path: "Tests/Units/TokenServiceHTTPTests"),
        // The tests of the keys stand here, too: they use the same scene.
        .testTarget(
            name: "AccessTokensTests",
            dependencies: ["AccessTokens", "AccessTokensKeys", "AccessTokensTesting", "TestBudgets", "TokenServiceConcurrency"],
            path: "Tests/Units/AccessTokensTests"),
        .testTarget(
            name: "AccessTokensDispatchTests",
            dependencies: [
                "AccessTokens", "AccessTokensDispatch", "AccessTokensKeys", "AccessTokensTesting", "RaceGallery",
                "TestBudgets", "TokenServiceConcurrency",
            ], path: "Tests/Units/AccessTokensDispatchTests"),
        .testTarget(
            name: "AccessTokensEtcdTests",
            dependencies: [
                "AccessTokens", "AccessTokensEtcd", "AccessTokensSharing", "AccessTokensTesting", "LoopbackServers",
                "TokenServiceConcurrency",
            ], path: "Tests/Units/AccessTokensEtcdTests"),
        .testTarget(
            name: "AccessTokensSharingTests",
            dependencies: [
                "AccessTokens", "AccessTokensKeys", "AccessTokensSharing", "AccessTokensTesting", "TestBudgets",
                "TokenServiceConcurrency",
            ],
            path: "Tests/Units/AccessTokensSharingTests"),
        // The processes that AccessTokensFilesTests kill.
        .executableTarget(
            name: "token-file-rotator", dependencies: ["AccessTokens", "AccessTokensFiles"],
            path: "Tests/System/token-file-rotator"),
        .executableTarget(
            name: "shared-grant-worker", dependencies: ["AccessTokens", "AccessTokensSharedFiles", "AccessTokensSharing"],
            path: "Tests/System/shared-grant-worker"),
        .testTarget(
            name: "AccessTokensFilesTests",
            dependencies: [
                "AccessTokens", "AccessTokensFiles", "AccessTokensKeys", "AccessTokensSharedFiles", "AccessTokensSharing",
                "AccessTokensTesting", "TestBudgets", "TokenServiceConcurrency", "shared-grant-worker", "token-file-rotator",
            ],
            path: "Tests/Units/AccessTokensFilesTests"),
        .testTarget(
            name: "AccessTokensOAuthTests",
            dependencies: [
                "AccessTokens", "AccessTokensOAuth", "AccessTokensTesting", "LoopbackServers", "TestBudgets",
                "TokenServiceConcurrency",
            ], path: "Tests/Units/AccessTokensOAuthTests"),
        .testTarget(
            name: "DataLoadingTests",
            dependencies: [
                "AccessTokens", "AccessTokensDispatch", "AccessTokensFiles", "AccessTokensKeys", "AccessTokensOAuth",
                "AccessTokensTesting", "DataLoading", "LoopbackServers", "TestBudgets", "TokenServiceConcurrency",
                "TokenServiceHTTP",
            ], path: "Tests/Units/DataLoadingTests"),
        .testTarget(
            name: "MovieScreensTests", dependencies: ["AccessTokens", "AccessTokensOAuth", "movie-screens"],
            path: "Tests/Units/MovieScreensTests"),
        .testTarget(
            name: "AccessTokensTestingTests",
            dependencies: ["AccessTokens", "AccessTokensSharing", "AccessTokensTesting", "Interleavings"],
            path: "Tests/Units/AccessTokensTestingTests"),
        .testTarget(
            name: "InterleavingsTests", dependencies: ["Interleavings", "TokenServiceConcurrency"],
            path: "Tests/Units/InterleavingsTests"),
        // Code that knows nothing of the explorer.
        .target(name: "UntouchedCode", path: "Tests/Units/UntouchedCode"),
        .testTarget(
            name: "InterleavingsEverythingTests",
            dependencies: ["Interleavings", "InterleavingsEverything", "TokenServiceConcurrency", "UntouchedCode"],
            path: "Tests/Units/InterleavingsEverythingTests"),
        .testTarget(
            name: "InterleavingsTestingTests",
            dependencies: ["Interleavings", "InterleavingsTesting", "TokenServiceConcurrency"],
            path: "Tests/Units/InterleavingsTestingTests"),
        .testTarget(
            name: "ExplorationTests",
            dependencies: [
                "AccessTokens", "AccessTokensDispatch", "AccessTokensKeys", "AccessTokensSharing",
                "AccessTokensTesting", "Interleavings", "InterleavingsEverything", "InterleavingsTesting",
                "RaceGallery", "TestBudgets", "TokenServiceConcurrency",
            ], path: "Tests/Exploration/ExplorationTests"),
        .testTarget(
            name: "RaceGalleryTests",
            dependencies: [
                "RaceGallery", "AccessTokensTesting", "Interleavings", "InterleavingsEverything",
                "InterleavingsTesting", "TestBudgets", "TokenServiceConcurrency",
            ], path: "Tests/Exploration/RaceGalleryTests"),
        .testTarget(
            name: "RaceLabTests",
            dependencies: [
                "race-lab", "movie-screens", "AccessTokens", "AccessTokensSharing", "AccessTokensTesting",
                "Interleavings", "InterleavingsTesting", "RaceGallery", "TestBudgets",
            ],
            path: "Tests/Units/RaceLabTests"),
        // The migration guide's app, before and after, with the settings that an app has.
        .target(
            name: "MigrationBefore", path: "Tests/Documents/Migration/Before", swiftSettings: [.swiftLanguageMode(.v5)]),
        .target(
            name: "MigrationAfter", dependencies: ["AccessTokens", "AccessTokensDispatch"],
            path: "Tests/Documents/Migration/After"),
        .testTarget(
            name: "DocumentationTests",
            dependencies: [
                "AccessTokens", "AccessTokensDispatch", "AccessTokensEtcd", "AccessTokensFiles", "AccessTokensKeys",
                "AccessTokensOAuth", "AccessTokensSharedFiles", "AccessTokensSharing", "AccessTokensTesting", "DataLoading",
                "Interleavings", "InterleavingsEverything", "InterleavingsTesting", "MigrationAfter", "MigrationBefore",
                "TokenServiceConcurrency",
            ], path: "Tests/Documents/DocumentationTests"),
        .testTarget(
            name: "RealServerTests",
            dependencies: [
                "AccessTokens", "AccessTokensDispatch", "AccessTokensKeys", "AccessTokensOAuth", "AccessTokensTesting",
                "DataLoading", "TokenServiceConcurrency",
            ], path: "Tests/System/RealServerTests",
            exclude: ["start-glewlwyd"]),
        .testTarget(
            name: "EtcdTests",
            dependencies: [
                "AccessTokens", "AccessTokensEtcd", "AccessTokensSharing", "AccessTokensTesting",
                "TokenServiceConcurrency",
            ],
            path: "Tests/System/EtcdTests", exclude: ["start-etcd"]),
    ],
    swiftLanguageModes: [.v6]
)

// One set of rules for every target of ours. Warnings are errors in CI only, so that a newer compiler's warning breaks no clone.
for target in package.targets where !target.name.hasPrefix("Migration") {
    target.swiftSettings = [
        .strictMemorySafety(),
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("ImmutableWeakCaptures"),
        .enableUpcomingFeature("InferIsolatedConformances"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    ]
}
