// swift-tools-version: 6.2
import PackageDescription

// A program as its author would start it, with default settings and every product of the package. `.ci/consumer` builds and runs
// it.
let package = Package(
    name: "Consumer",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "TokenService", path: "../../..")
    ],
    targets: [
        .executableTarget(
            name: "consumer",
            dependencies: [
                .product(name: "AccessTokens", package: "TokenService"),
                .product(name: "AccessTokensDispatch", package: "TokenService"),
                .product(name: "AccessTokensDPoP", package: "TokenService"),
                .product(name: "AccessTokensDiscovery", package: "TokenService"),
                .product(name: "AccessTokensEtcd", package: "TokenService"),
                .product(name: "AccessTokensFiles", package: "TokenService"),
                .product(name: "AccessTokensKeys", package: "TokenService"),
                .product(name: "AccessTokensOAuth", package: "TokenService"),
                .product(name: "AccessTokensSharedFiles", package: "TokenService"),
                .product(name: "AccessTokensSharing", package: "TokenService"),
                .product(name: "AccessTokensTesting", package: "TokenService"),
                .product(name: "DataLoading", package: "TokenService"),
                .product(name: "Interleavings", package: "TokenService"),
            ]),
        .executableTarget(
            name: "screens",
            dependencies: [
                .product(name: "AccessTokens", package: "TokenService"),
                .product(name: "AccessTokensDispatch", package: "TokenService"),
                .product(name: "AccessTokensOAuth", package: "TokenService"),
                .product(name: "DataLoading", package: "TokenService"),
            ],
            swiftSettings: [.defaultIsolation(MainActor.self)]),
        .testTarget(
            name: "ConsumerTests",
            dependencies: [
                .product(name: "AccessTokens", package: "TokenService"),
                .product(name: "AccessTokensTesting", package: "TokenService"),
                .product(name: "Interleavings", package: "TokenService"),
                .product(name: "InterleavingsTesting", package: "TokenService"),
            ]),
    ]
)
