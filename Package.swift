// swift-tools-version: 6.2
import PackageDescription

/// A target of tests, with what most of them use.
func tests(_ path: String, _ dependencies: Target.Dependency...) -> Target {
    testTarget(path, ["AccessTokens", "AccessTokensTesting", "TestBudgets", "TokenServiceConcurrency"] + dependencies)
}

/// A target of tests that use nothing but the explorer.
func explorerTests(_ path: String, _ dependencies: Target.Dependency...) -> Target {
    testTarget(path, ["Interleavings", "TestBudgets", "TokenServiceConcurrency"] + dependencies)
}

func testTarget(_ path: String, _ dependencies: [Target.Dependency]) -> Target {
    // Samples see what a reader's program sees.
    .testTarget(
        name: String(path.drop { $0 != "/" }.dropFirst()), dependencies: dependencies, path: "Tests/\(path)",
        packageAccess: !path.hasPrefix("Documents/"))
}

func articleReaders(inSwift version: Int) -> Target {
    .target(
        name: "ArticlesInSwift\(version)", dependencies: ["AccessTokens", "AccessTokensDispatch", "DataLoading"],
        path: "Tests/Documents/Migration/ArticlesInSwift\(version)", packageAccess: false,
        swiftSettings: [.swiftLanguageMode(version == 5 ? .v5 : .v6)])
}

// Apple's list of what a module reads and why. Elsewhere a resource would only make the module link Foundation.
let privacy = "PrivacyInfo.xcprivacy"
#if canImport(Darwin)
let (resources, excluded): ([Resource], [String]) = ([.copy(privacy)], [])
#else
let (resources, excluded): ([Resource], [String]) = ([], [privacy])
#endif

let package = Package(
    name: "TokenService",
    platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
    products: [
        .library(name: "AccessTokens", targets: ["AccessTokens"]),
        .library(name: "AccessTokensDispatch", targets: ["AccessTokensDispatch"]),
        .library(name: "AccessTokensDiscovery", targets: ["AccessTokensDiscovery", "AccessTokensHTTP"]),
        .library(name: "AccessTokensDPoP", targets: ["AccessTokensDPoP", "AccessTokensHTTP"]),
        .library(name: "AccessTokensEtcd", targets: ["AccessTokensEtcd", "AccessTokensHTTP"]),
        .library(name: "AccessTokensFiles", targets: ["AccessTokensFiles"]),
        .library(name: "AccessTokensKeys", targets: ["AccessTokensKeys"]),
        .library(name: "AccessTokensOAuth", targets: ["AccessTokensOAuth", "AccessTokensHTTP"]),
        .library(name: "AccessTokensSharedFiles", targets: ["AccessTokensSharedFiles"]),
        .library(name: "AccessTokensSharing", targets: ["AccessTokensSharing"]),
        .library(name: "DataLoading", targets: ["DataLoading", "AccessTokensHTTP"]),
        .library(name: "AccessTokensTesting", targets: ["AccessTokensTesting"]),
        .library(name: "Interleavings", targets: ["Interleavings"]),
        .library(name: "InterleavingsTesting", targets: ["InterleavingsTesting"]),
        .library(name: "InterleavingsEverything", targets: ["InterleavingsEverything"]),
    ],
    traits: [
        .trait(
            name: "URLSession",
            description: "Transports over URLSession; without it a program on Linux links no libcurl."),
        .default(enabledTraits: ["URLSession"]),
    ],
    targets: [
        // Shared by several modules and hidden from users: everything in it is `package`.
        .target(name: "TokenServiceConcurrency"),
        // The seam to the network, which comes with the products that send something; the rest of it is `package`.
        .target(name: "AccessTokensHTTP", dependencies: ["TokenServiceConcurrency"]),
        .target(name: "AccessTokens", dependencies: ["TokenServiceConcurrency"]),
        .target(name: "AccessTokensDispatch", dependencies: ["AccessTokens", "TokenServiceConcurrency"]),
        .target(name: "AccessTokensKeys", dependencies: ["AccessTokens", "TokenServiceConcurrency"]),
        .target(
            name: "AccessTokensSharing", dependencies: ["AccessTokens", "AccessTokensKeys", "TokenServiceConcurrency"]),
        .target(
            name: "AccessTokensEtcd",
            dependencies: ["AccessTokens", "AccessTokensSharing", "TokenServiceConcurrency", "AccessTokensHTTP"]),
        .target(
            name: "AccessTokensFiles", dependencies: ["AccessTokens", "TokenServiceConcurrency"], exclude: excluded,
            resources: resources),
        .target(
            name: "AccessTokensSharedFiles",
            dependencies: [
                "AccessTokens", "AccessTokensFiles", "AccessTokensKeys", "AccessTokensSharing", "TokenServiceConcurrency",
            ]),
        .target(name: "AccessTokensOAuth", dependencies: ["AccessTokens", "TokenServiceConcurrency", "AccessTokensHTTP"]),
        .target(
            name: "AccessTokensDiscovery", dependencies: ["AccessTokensOAuth", "TokenServiceConcurrency", "AccessTokensHTTP"]),
        .target(name: "AccessTokensDPoP", dependencies: ["AccessTokens", "TokenServiceConcurrency", "AccessTokensHTTP"]),
        .target(name: "DataLoading", dependencies: ["AccessTokens", "TokenServiceConcurrency", "AccessTokensHTTP"]),
        .target(
            name: "AccessTokensTesting",
            dependencies: ["AccessTokens", "AccessTokensDispatch", "AccessTokensSharing", "TokenServiceConcurrency"]),
        .target(name: "Interleavings", dependencies: ["TokenServiceConcurrency"], exclude: ["README.md"]),
        .target(name: "InterleavingsTesting", dependencies: ["Interleavings", "TokenServiceConcurrency"]),
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
                "AccessTokens", "AccessTokensDispatch", "AccessTokensOAuth", "Interleavings", "RaceGallery",
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
        .executableTarget(name: "driven", dependencies: ["Interleavings", "InterleavingsEverything"], path: "Benchmarks/driven"),
        .target(
            name: "BenchmarkSubjects", dependencies: ["AccessTokens", "AccessTokensDispatch", "AccessTokensKeys", "RaceGallery"],
            path: "Benchmarks/Subjects"),
        // Does one thing so many times, for a tool that counts instructions; links no Foundation but its essentials.
        .target(name: "OneThread", path: "Benchmarks/OneThread"),
        .executableTarget(
            name: "instructions",
            dependencies: [
                "AccessTokens", "AccessTokensDispatch", "AccessTokensKeys", "BenchmarkSubjects", "OneThread", "RaceGallery",
            ],
            path: "Benchmarks/instructions"),
        // Sends one request so many times, for the same tool.
        .executableTarget(
            name: "requests", dependencies: ["AccessTokens", "DataLoading", "LoopbackServers"], path: "Benchmarks/requests"),
        .executableTarget(
            name: "Benchmarks",
            dependencies: [
                "AccessTokens", "AccessTokensDispatch", "AccessTokensKeys", "AccessTokensSharedFiles", "AccessTokensSharing",
                "AccessTokensTesting", "AllocationCounter", "BenchmarkSubjects", "Interleavings", "RaceGallery", "first-token",
                "empty-program",
            ],
            path: "Benchmarks/Benchmarks"),
        // How much the tests do every day, and how much in CI.
        .target(name: "TestBudgets", path: "Tests/Support/TestBudgets"),
        // The internals that the tests of documents may use.
        .target(
            name: "Insides",
            dependencies: [
                "AccessTokens", "AccessTokensDispatch", "AccessTokensEtcd", "AccessTokensKeys", "ChildProcesses", "Interleavings",
                "InterleavingsTesting", "TokenServiceConcurrency",
            ],
            path: "Tests/Support/Insides"),
        // Starts programs.
        .target(
            name: "ChildProcesses", dependencies: ["TokenServiceConcurrency"], path: "Tests/Support/ChildProcesses"),
        tests("Units/TokenServiceConcurrencyTests"),
        tests("Units/AccessTokensHTTPTests", "LoopbackServers", "AccessTokensHTTP"),
        // The tests of the keys stand here, too: they use the same scene.
        tests("Units/AccessTokensTests", "AccessTokensKeys"),
        tests("Units/AccessTokensDispatchTests", "AccessTokensDispatch", "AccessTokensKeys", "RaceGallery"),
        tests("Units/AccessTokensEtcdTests", "AccessTokensEtcd", "AccessTokensHTTP", "AccessTokensSharing", "LoopbackServers"),
        tests("Units/AccessTokensSharingTests", "AccessTokensDispatch", "AccessTokensKeys", "AccessTokensSharing"),
        // The processes that AccessTokensFilesTests kill.
        .executableTarget(
            name: "token-file-rotator", dependencies: ["AccessTokens", "AccessTokensFiles"],
            path: "Tests/System/token-file-rotator"),
        .executableTarget(
            name: "shared-grant-worker", dependencies: ["AccessTokens", "AccessTokensSharedFiles", "AccessTokensSharing"],
            path: "Tests/System/shared-grant-worker"),
        tests(
            "Units/AccessTokensFilesTests", "AccessTokensFiles", "AccessTokensKeys", "AccessTokensSharedFiles",
            "AccessTokensSharing", "ChildProcesses", "shared-grant-worker", "token-file-rotator"),
        tests("Units/AccessTokensOAuthTests", "AccessTokensHTTP", "AccessTokensOAuth", "LoopbackServers"),
        tests("Units/AccessTokensDiscoveryTests", "AccessTokensDiscovery", "AccessTokensHTTP", "AccessTokensOAuth"),
        tests(
            "Units/AccessTokensDPoPTests", "AccessTokensDPoP", "AccessTokensHTTP", "AccessTokensOAuth", "DataLoading",
            "Interleavings",
            "LoopbackServers"),
        tests(
            "Units/DataLoadingTests", "AccessTokensDispatch", "AccessTokensFiles", "AccessTokensKeys", "AccessTokensOAuth",
            "DataLoading", "LoopbackServers", "AccessTokensHTTP"),
        tests("Units/MovieScreensTests", "AccessTokensOAuth", "movie-screens"),
        tests("Units/AccessTokensTestingTests", "AccessTokensSharing", "Interleavings"),
        explorerTests("Units/InterleavingsTests"),
        // Code that knows nothing of the explorer.
        .target(name: "UntouchedCode", path: "Tests/Units/UntouchedCode"),
        explorerTests("Units/InterleavingsEverythingTests", "InterleavingsEverything", "UntouchedCode"),
        explorerTests("Units/InterleavingsTestingTests", "ChildProcesses", "InterleavingsEverything", "InterleavingsTesting"),
        tests(
            "Exploration/ExplorationTests", "AccessTokensDispatch", "AccessTokensKeys", "AccessTokensSharing", "Interleavings",
            "InterleavingsEverything", "InterleavingsTesting", "RaceGallery"),
        tests(
            "Exploration/RaceGalleryTests", "Interleavings", "InterleavingsEverything", "InterleavingsTesting", "RaceGallery"),
        tests(
            "Units/RaceLabTests", "AccessTokensSharing", "ChildProcesses", "Interleavings", "InterleavingsTesting", "RaceGallery",
            "movie-screens", "race-lab"),
        // The migration guide's app, before and after, with what an app sees and the settings that it has.
        .target(
            name: "MigrationBefore", path: "Tests/Documents/Migration/Before", packageAccess: false,
            swiftSettings: [.swiftLanguageMode(.v5)]),
        .target(
            name: "MigrationAfter", dependencies: ["AccessTokens", "AccessTokensDispatch"],
            path: "Tests/Documents/Migration/After", packageAccess: false),
        // What the articles' readers have written, over the names that the guide gives them, in both language modes.
        articleReaders(inSwift: 5),
        articleReaders(inSwift: 6),
        tests(
            "Documents/DocumentationTests", "AccessTokensDPoP", "AccessTokensDiscovery", "AccessTokensDispatch",
            "AccessTokensEtcd", "AccessTokensFiles", "AccessTokensHTTP", "AccessTokensKeys", "AccessTokensOAuth",
            "AccessTokensSharedFiles", "AccessTokensSharing", "ArticlesInSwift5", "ArticlesInSwift6", "DataLoading", "Insides",
            "Interleavings", "InterleavingsEverything", "InterleavingsTesting", "LoopbackServers", "MigrationAfter",
            "MigrationBefore"),
        tests(
            "System/RealServerTests", "AccessTokensDPoP", "AccessTokensDiscovery", "AccessTokensDispatch", "AccessTokensHTTP",
            "AccessTokensKeys", "AccessTokensOAuth",
            "DataLoading"),
        tests("System/EtcdTests", "AccessTokensEtcd", "AccessTokensHTTP", "AccessTokensSharing"),
    ],
    swiftLanguageModes: [.v6]
)

// Builds only some test targets, and what they need: TEST_TARGETS=AccessTokensTests,DataLoadingTests swift test
if let named = Context.environment["TEST_TARGETS"] {
    var kept: Set<String> = []
    func keep(_ name: String) {
        guard kept.insert(name).inserted, let target = package.targets.first(where: { $0.name == name }) else { return }
        for case .byNameItem(let dependency, _) in target.dependencies { keep(dependency) }
    }
    for name in named.split(separator: ",") { keep(String(name)) }
    package.targets.removeAll { !kept.contains($0.name) }
    package.products.removeAll { !kept.contains($0.name) }
}

// One set of rules for every target of ours; what a reader writes is compiled with a reader's settings. Warnings are errors in CI
// only, so that a newer compiler's warning breaks no clone.
for target in package.targets where !(target.path ?? "").hasPrefix("Tests/Documents/") {
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
