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
        .executable(name: "race-lab", targets: ["race-lab"]),
        .executable(name: "movie-screens", targets: ["movie-screens"]),
    ],
    targets: [
        .target(name: "AccessTokens"),
        .target(name: "AccessTokensDispatch", dependencies: ["AccessTokens"]),
        .target(name: "AccessTokensFiles", dependencies: ["AccessTokens"]),
        .target(name: "AccessTokensOAuth", dependencies: ["AccessTokens"]),
        .target(name: "DataLoading", dependencies: ["AccessTokens", "AccessTokensOAuth"]),
        .target(name: "AccessTokensTesting", dependencies: ["AccessTokens", "AccessTokensDispatch"]),
        .target(name: "Interleavings"),
        .target(name: "InterleavingsTesting", dependencies: ["Interleavings"]),
        .target(
            name: "RaceGallery",
            dependencies: ["AccessTokens", "AccessTokensDispatch", "AccessTokensTesting", "Interleavings"]),
        .executableTarget(
            name: "race-lab",
            dependencies: [
                "AccessTokens", "AccessTokensDispatch", "AccessTokensFiles", "AccessTokensOAuth", "AccessTokensTesting",
                "Interleavings", "RaceGallery", "TestStage",
            ]),
        // The second article's example; of the package it uses what is public, and a server to talk to.
        .executableTarget(
            name: "movie-screens", dependencies: ["AccessTokens", "AccessTokensOAuth", "DataLoading", "LoopbackServers"]),
        // Raw servers on the loopback interface, right or wrong, that test targets and the sample share.
        .target(name: "LoopbackServers", path: "Tests/LoopbackServers"),
        // The thread-less executor that test targets and the lab share.
        .target(name: "TestStage", dependencies: ["AccessTokens", "AccessTokensTesting"], path: "Tests/TestStage"),
        // Measures what everything above costs; counts allocations by standing in front of malloc.
        .target(name: "AllocationCounter", path: "Benchmarks/AllocationCounter"),
        .executableTarget(name: "first-token", dependencies: ["AccessTokens"], path: "Benchmarks/first-token"),
        .executableTarget(name: "empty-program", path: "Benchmarks/empty-program"),
        .executableTarget(
            name: "Benchmarks",
            dependencies: [
                "AccessTokens", "AccessTokensDispatch", "AllocationCounter", "Interleavings", "RaceGallery", "TestStage",
                "first-token", "empty-program",
            ],
            path: "Benchmarks/Benchmarks"),
        .testTarget(name: "AccessTokensTests", dependencies: ["AccessTokens", "AccessTokensTesting", "TestStage"]),
        .testTarget(
            name: "AccessTokensDispatchTests",
            dependencies: ["AccessTokens", "AccessTokensDispatch", "AccessTokensTesting", "RaceGallery", "TestStage"]),
        // The process that AccessTokensFilesTests kill.
        .executableTarget(
            name: "token-file-rotator", dependencies: ["AccessTokens", "AccessTokensFiles"], path: "Tests/token-file-rotator"),
        .testTarget(
            name: "AccessTokensFilesTests", dependencies: ["AccessTokens", "AccessTokensFiles", "token-file-rotator"]),
        .testTarget(
            name: "AccessTokensOAuthTests",
            dependencies: ["AccessTokens", "AccessTokensOAuth", "AccessTokensTesting", "LoopbackServers"]),
        .testTarget(
            name: "DataLoadingTests",
            dependencies: [
                "AccessTokens", "AccessTokensDispatch", "AccessTokensFiles", "AccessTokensOAuth", "AccessTokensTesting",
                "DataLoading", "LoopbackServers", "TestStage",
            ]),
        .testTarget(
            name: "MovieScreensTests", dependencies: ["AccessTokens", "AccessTokensOAuth", "movie-screens"]),
        .testTarget(name: "AccessTokensTestingTests", dependencies: ["AccessTokensTesting", "TestStage"]),
        .testTarget(name: "InterleavingsTests", dependencies: ["Interleavings"]),
        .testTarget(name: "InterleavingsTestingTests", dependencies: ["Interleavings", "InterleavingsTesting"]),
        .testTarget(
            name: "ExplorationTests",
            dependencies: [
                "AccessTokens", "AccessTokensDispatch", "Interleavings", "InterleavingsTesting", "RaceGallery",
            ]),
        .testTarget(
            name: "RaceGalleryTests", dependencies: ["RaceGallery", "AccessTokensTesting", "Interleavings", "TestStage"]),
        .testTarget(
            name: "RaceLabTests",
            dependencies: ["race-lab", "movie-screens", "AccessTokensTesting", "Interleavings", "RaceGallery", "TestStage"]),
        .testTarget(
            name: "DocumentationTests",
            dependencies: [
                "AccessTokens", "AccessTokensDispatch", "AccessTokensFiles", "AccessTokensOAuth", "AccessTokensTesting",
                "DataLoading", "Interleavings", "InterleavingsTesting",
            ]),
        .testTarget(
            name: "RealServerTests",
            dependencies: ["AccessTokens", "AccessTokensDispatch", "AccessTokensOAuth", "AccessTokensTesting", "DataLoading"],
            exclude: ["start-glewlwyd"]),
    ],
    swiftLanguageModes: [.v6]
)

// One set of rules for every target: warnings are errors, memory safety is strict, isolation is what the source says.
for target in package.targets {
    target.swiftSettings = [
        .treatAllWarnings(as: .error),
        .treatWarning("DeprecatedDeclaration", as: .warning),
        .strictMemorySafety(),
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("ImmutableWeakCaptures"),
        .enableUpcomingFeature("InferIsolatedConformances"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    ]
}
