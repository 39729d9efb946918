// swift-tools-version: 6.2
import PackageDescription

/// A product of a package, which has the package's own name unless said otherwise.
func product(_ name: String, of package: String = "TokenService") -> Target.Dependency { .product(name: name, package: package) }

let package = Package(
    name: "Recipes",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "TokenService", path: "../.."),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
        .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.7.0"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.0.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.0"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.0"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        .package(url: "https://github.com/grpc/grpc-swift-2", from: "2.4.0"),
        .package(url: "https://github.com/grpc/grpc-swift-nio-transport", from: "2.0.0"),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.0"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: [
        .target(
            name: "OverAsyncHTTPClient",
            dependencies: [
                product("AccessTokens"), product("AccessTokensOAuth"),
                product("AsyncHTTPClient", of: "async-http-client"), product("NIOCore", of: "swift-nio"),
                product("NIOHTTP1", of: "swift-nio"), product("NIOPosix", of: "swift-nio"),
                product("NIOSSL", of: "swift-nio-ssl"),
            ]),
        .target(
            name: "InMiddleware",
            dependencies: [
                product("AccessTokens"), product("AccessTokensOAuth"), product("HTTPTypes", of: "swift-http-types"),
            ]),
        .target(name: "OverGRPC", dependencies: [product("AccessTokens"), product("GRPCCore", of: "grpc-swift-2")]),
        .target(
            name: "ToSwiftLog",
            dependencies: [product("AccessTokens"), product("AccessTokensKeys"), product("Logging", of: "swift-log")]),
        .target(
            name: "ToSwiftMetrics",
            dependencies: [product("AccessTokens"), product("AccessTokensKeys"), product("Metrics", of: "swift-metrics")]),
        .target(
            name: "WithServiceLifecycle",
            dependencies: [
                product("AccessTokens"), product("Logging", of: "swift-log"),
                product("ServiceLifecycle", of: "swift-service-lifecycle"),
                product("UnixSignals", of: "swift-service-lifecycle"),
            ]),
        .target(
            name: "WithTracing", dependencies: [product("AccessTokens"), product("Tracing", of: "swift-distributed-tracing")]),
        .target(
            name: "BehindHummingbird",
            dependencies: [
                product("AccessTokens"), product("AccessTokensKeys"), product("AccessTokensOAuth"),
                product("AsyncHTTPClient", of: "async-http-client"), product("HTTPTypes", of: "swift-http-types"),
                product("Hummingbird", of: "hummingbird"), product("NIOCore", of: "swift-nio"),
                product("NIOHTTP1", of: "swift-nio"),
            ]),
        .target(
            name: "ThroughABroker",
            dependencies: [
                product("AccessTokens"), product("AsyncHTTPClient", of: "async-http-client"),
                product("HTTPTypes", of: "swift-http-types"), product("Hummingbird", of: "hummingbird"),
                product("Logging", of: "swift-log"), product("NIOCore", of: "swift-nio"), product("NIOHTTP1", of: "swift-nio"),
                product("ServiceLifecycle", of: "swift-service-lifecycle"),
                product("UnixSignals", of: "swift-service-lifecycle"),
            ]),
        .target(
            name: "InSQLite", dependencies: [product("AccessTokensSharing"), product("GRDB", of: "GRDB.swift")]),
        .systemLibrary(name: "CPostgreSQL", pkgConfig: "libpq", providers: [.apt(["libpq-dev"]), .brew(["libpq"])]),
        .target(name: "InPostgreSQL", dependencies: ["CPostgreSQL", product("AccessTokensSharing")]),
        .systemLibrary(name: "CHiredis", providers: [.apt(["libhiredis-dev"]), .brew(["hiredis"])]),
        .target(name: "InValkey", dependencies: ["CHiredis", product("AccessTokensSharing")]),
        .target(
            name: "SigningWithCrypto",
            dependencies: [
                product("AccessTokensDPoP"), product("AccessTokensOAuth"), product("Crypto", of: "swift-crypto"),
                product("CryptoExtras", of: "swift-crypto"),
            ]),
        .executableTarget(
            name: "AsAServer",
            dependencies: [
                "CPostgreSQL", product("AccessTokens"), product("AccessTokensKeys"), product("AccessTokensOAuth"),
                product("AccessTokensSharing"), product("AsyncHTTPClient", of: "async-http-client"),
                product("HTTPTypes", of: "swift-http-types"), product("Hummingbird", of: "hummingbird"),
                product("Logging", of: "swift-log"), product("Metrics", of: "swift-metrics"),
                product("NIOCore", of: "swift-nio"), product("NIOHTTP1", of: "swift-nio"),
                product("NIOPosix", of: "swift-nio"), product("NIOSSL", of: "swift-nio-ssl"),
                product("ServiceLifecycle", of: "swift-service-lifecycle"),
                product("Tracing", of: "swift-distributed-tracing"),
                product("UnixSignals", of: "swift-service-lifecycle"),
            ]),
        .executableTarget(
            name: "AsATool",
            dependencies: [
                product("AccessTokens"), product("AccessTokensOAuth"), product("AccessTokensSharedFiles"),
                product("AccessTokensSharing"), product("DataLoading"),
            ]),
        // Measures the transport beside `URLSession`.
        .executableTarget(name: "transports", dependencies: ["LoopbackServers", "OverAsyncHTTPClient"]),
        // Measures for how long processes get no token after something goes wrong with one of them, or with their store.
        .executableTarget(
            name: "outages",
            dependencies: [
                "InPostgreSQL", "InSQLite", "InValkey", product("AccessTokensEtcd"), product("AccessTokensSharedFiles"),
                product("AccessTokensSharing"),
            ], path: "Tests/outages"),
        // The processes of the tests.
        .executableTarget(
            name: "worker",
            dependencies: [
                "BehindHummingbird", "OverAsyncHTTPClient", "ThroughABroker", product("AccessTokensFiles"),
                product("AccessTokensKeys"), product("AccessTokensOAuth"), product("AccessTokensSharedFiles"),
                product("AccessTokensSharing"), product("HTTPTypes", of: "swift-http-types"),
            ], path: "Tests/worker"),
        // A link to the servers of this package's own tests; so is a file of the tests.
        .target(name: "LoopbackServers", path: "Tests/LoopbackServers"),
        .testTarget(
            name: "GRPCTests",
            dependencies: [
                "OverGRPC", product("AccessTokens"), product("GRPCCore", of: "grpc-swift-2"),
                product("GRPCNIOTransportHTTP2Posix", of: "grpc-swift-nio-transport"),
            ]),
        .testTarget(
            name: "MiddlewareTests",
            dependencies: [
                "InMiddleware", product("AccessTokens"), product("AccessTokensOAuth"),
                product("HTTPTypes", of: "swift-http-types"),
            ]),
        .testTarget(
            name: "RecipesTests",
            dependencies: [
                "AsAServer", "AsATool", "BehindHummingbird", "InPostgreSQL", "InSQLite", "InValkey", "LoopbackServers",
                "OverAsyncHTTPClient",
                "SigningWithCrypto", "ThroughABroker", "ToSwiftLog",
                "ToSwiftMetrics", "WithServiceLifecycle", "WithTracing", "worker",
                product("AccessTokensDPoP"), product("AccessTokensEtcd"), product("AccessTokensFiles"),
                product("AccessTokensKeys"), product("AccessTokensOAuth"), product("AccessTokensSharedFiles"),
                product("AccessTokensSharing"),
                product("AccessTokensTesting"), product("Crypto", of: "swift-crypto"),
                product("CryptoExtras", of: "swift-crypto"), product("GRDB", of: "GRDB.swift"),
                product("HummingbirdTesting", of: "hummingbird"), product("InMemoryLogging", of: "swift-log"),
                product("InMemoryTracing", of: "swift-distributed-tracing"),
                product("MetricsTestKit", of: "swift-metrics"),
                product("ServiceLifecycleTestKit", of: "swift-service-lifecycle"),
            ]),
    ],
    swiftLanguageModes: [.v6]
)

/// Parts that can be left out: the test file of each target, and the package, the system's library or the program that it needs;
/// with tests in a target of their own, that target.
let parts = [
    "AsAServer": (tests: "ServerTests.swift", needs: "hummingbird", isSlow: true),
    "BehindHummingbird": (tests: "HummingbirdTests.swift", needs: "hummingbird", isSlow: true),
    "InPostgreSQL": (tests: "PostgreSQLTests.swift", needs: "CPostgreSQL", isSlow: false),
    "InSQLite": (tests: "SQLiteTests.swift", needs: "GRDB.swift", isSlow: true),
    "InValkey": (tests: "ValkeyTests.swift", needs: "CHiredis", isSlow: false),
    "OverGRPC": (tests: "", needs: "GRPCTests", isSlow: true),
    "SigningWithCrypto": (tests: "SigningTests.swift", needs: "swift-crypto", isSlow: true),
    "ThroughABroker": (tests: "BrokerTests.swift", needs: "worker", isSlow: true),
    "worker": (tests: "RollingRestartTests.swift", needs: "hummingbird", isSlow: true),
]
// RECIPES=quick leaves out the slowest builds, as CI does for each change; RECIPES_WITHOUT="InSQLite InValkey" leaves out parts
// whose libraries the system lacks.
let lacking = Context.environment["RECIPES_WITHOUT", default: ""].split(separator: " ").map { String($0) }
let left = parts.filter { lacking.contains($0.key) || $0.value.isSlow && Context.environment["RECIPES"] == "quick" }
package.targets.removeAll { target in left.contains { [$0.key, $0.value.needs].contains(target.name) } }
if ["InPostgreSQL", "InSQLite", "InValkey"].contains(where: { left[$0] != nil }) {
    package.targets.removeAll { $0.name == "outages" }
}
for target in package.targets where target.name == "RecipesTests" {
    target.exclude = left.values.map(\.tests).filter { !$0.isEmpty }.sorted()
    target.dependencies.removeAll { dependency in
        switch dependency {
        case .byNameItem(let name, _): left.contains { [$0.key, $0.value.needs].contains(name) }
        case .productItem(_, let package, _, _): left.values.contains { $0.needs == package }
        default: false
        }
    }
}

for target in package.targets where target.type != .system {
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
