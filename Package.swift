// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "TokenService",
    platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
    products: [
        .library(name: "AccessTokens", targets: ["AccessTokens"]),
        .library(name: "AccessTokensDispatch", targets: ["AccessTokensDispatch"]),
        .library(name: "AccessTokensFiles", targets: ["AccessTokensFiles"]),
        .library(name: "AccessTokensOAuth", targets: ["AccessTokensOAuth"]),
        .library(name: "DataLoading", targets: ["DataLoading"]),
        .library(name: "AccessTokensTesting", targets: ["AccessTokensTesting"]),
        .library(name: "Interleavings", targets: ["Interleavings"]),
        .library(name: "InterleavingsTesting", targets: ["InterleavingsTesting"]),
    ],
    targets: [
        // What several modules share and no user sees: everything in it is `package`.
        .target(name: "TokenServiceConcurrency"),
        .target(name: "TokenServiceHTTP", dependencies: ["TokenServiceConcurrency"]),
        .target(name: "AccessTokens", dependencies: ["TokenServiceConcurrency"]),
        .target(name: "AccessTokensDispatch", dependencies: ["AccessTokens", "TokenServiceConcurrency"]),
        .target(name: "AccessTokensFiles", dependencies: ["AccessTokens", "TokenServiceConcurrency"]),
        .target(name: "AccessTokensOAuth", dependencies: ["AccessTokens", "TokenServiceHTTP"]),
        .target(name: "DataLoading", dependencies: ["AccessTokens", "TokenServiceConcurrency", "TokenServiceHTTP"]),
        .target(
            name: "AccessTokensTesting", dependencies: ["AccessTokens", "AccessTokensDispatch", "TokenServiceConcurrency"]),
        .target(name: "Interleavings", dependencies: ["TokenServiceConcurrency"]),
        .target(name: "InterleavingsTesting", dependencies: ["Interleavings"]),
        .target(
            name: "RaceGallery",
            dependencies: [
                "AccessTokens", "AccessTokensDispatch", "AccessTokensTesting", "Interleavings", "TokenServiceConcurrency",
            ]),
        .executableTarget(
            name: "race-lab",
            dependencies: [
                "AccessTokens", "AccessTokensDispatch", "AccessTokensFiles", "AccessTokensOAuth", "Interleavings", "RaceGallery",
                "TokenServiceConcurrency",
            ]),
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
        .executableTarget(
            name: "Benchmarks",
            dependencies: [
                "AccessTokens", "AccessTokensDispatch", "AccessTokensTesting", "AllocationCounter", "Interleavings",
                "RaceGallery", "first-token", "empty-program",
            ],
            path: "Benchmarks/Benchmarks"),
        .testTarget(
            name: "TokenServiceConcurrencyTests", dependencies: ["TokenServiceConcurrency"],
            path: "Tests/Units/TokenServiceConcurrencyTests"),
        .testTarget(
            name: "TokenServiceHTTPTests", dependencies: ["LoopbackServers", "TokenServiceConcurrency", "TokenServiceHTTP"],
            path: "Tests/Units/TokenServiceHTTPTests"),
        .testTarget(
            name: "AccessTokensTests",
            dependencies: ["AccessTokens", "AccessTokensTesting", "TokenServiceConcurrency"],
            path: "Tests/Units/AccessTokensTests"),
        .testTarget(
            name: "AccessTokensDispatchTests",
            dependencies: [
                "AccessTokens", "AccessTokensDispatch", "AccessTokensTesting", "RaceGallery",
                "TokenServiceConcurrency",
            ], path: "Tests/Units/AccessTokensDispatchTests"),
        // The process that AccessTokensFilesTests kill.
        .executableTarget(
            name: "token-file-rotator", dependencies: ["AccessTokens", "AccessTokensFiles"],
            path: "Tests/System/token-file-rotator"),
        .testTarget(
            name: "AccessTokensFilesTests",
            dependencies: ["AccessTokens", "AccessTokensFiles", "token-file-rotator", "TokenServiceConcurrency"],
            path: "Tests/Units/AccessTokensFilesTests"),
        .testTarget(
            name: "AccessTokensOAuthTests",
            dependencies: [
                "AccessTokens", "AccessTokensOAuth", "AccessTokensTesting", "LoopbackServers", "TokenServiceConcurrency",
            ], path: "Tests/Units/AccessTokensOAuthTests"),
        .testTarget(
            name: "DataLoadingTests",
            dependencies: [
                "AccessTokens", "AccessTokensDispatch", "AccessTokensFiles", "AccessTokensOAuth", "AccessTokensTesting",
                "DataLoading", "LoopbackServers", "TokenServiceConcurrency",
                "TokenServiceHTTP",
            ], path: "Tests/Units/DataLoadingTests"),
        .testTarget(
            name: "MovieScreensTests", dependencies: ["AccessTokens", "AccessTokensOAuth", "movie-screens"],
            path: "Tests/Units/MovieScreensTests"),
        .testTarget(
            name: "AccessTokensTestingTests", dependencies: ["AccessTokensTesting"], path: "Tests/Units/AccessTokensTestingTests"),
        .testTarget(
            name: "InterleavingsTests", dependencies: ["Interleavings", "TokenServiceConcurrency"],
            path: "Tests/Units/InterleavingsTests"),
        .testTarget(
            name: "InterleavingsTestingTests",
            dependencies: ["Interleavings", "InterleavingsTesting", "TokenServiceConcurrency"],
            path: "Tests/Units/InterleavingsTestingTests"),
        .testTarget(
            name: "ExplorationTests",
            dependencies: [
                "AccessTokens", "AccessTokensDispatch", "Interleavings", "InterleavingsTesting", "RaceGallery",
                "TokenServiceConcurrency",
            ], path: "Tests/Exploration/ExplorationTests"),
        .testTarget(
            name: "RaceGalleryTests",
            dependencies: ["RaceGallery", "AccessTokensTesting", "Interleavings", "TokenServiceConcurrency"],
            path: "Tests/Exploration/RaceGalleryTests"),
        .testTarget(
            name: "RaceLabTests",
            dependencies: ["race-lab", "movie-screens", "AccessTokensTesting", "Interleavings", "RaceGallery"],
            path: "Tests/Units/RaceLabTests"),
        .testTarget(
            name: "DocumentationTests",
            dependencies: [
                "AccessTokens", "AccessTokensDispatch", "AccessTokensFiles", "AccessTokensOAuth", "AccessTokensTesting",
                "DataLoading", "Interleavings", "InterleavingsTesting", "TokenServiceConcurrency",
            ], path: "Tests/Documents/DocumentationTests"),
        .testTarget(
            name: "RealServerTests",
            dependencies: [
                "AccessTokens", "AccessTokensDispatch", "AccessTokensOAuth", "AccessTokensTesting", "DataLoading",
                "TokenServiceConcurrency",
            ], path: "Tests/System/RealServerTests",
            exclude: ["start-glewlwyd"]),
    ],
    swiftLanguageModes: [.v6]
)

// One set of rules for every target. Warnings are errors in CI only, so that a newer compiler's warning breaks no clone.
for target in package.targets {
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
