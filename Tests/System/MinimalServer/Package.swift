// swift-tools-version: 6.2
import PackageDescription

// A program that brings its own HTTP client, without the trait `URLSession`. `.ci/consumer` builds it and checks what it links.
let package = Package(
    name: "MinimalServer",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "TokenService", path: "../../..", traits: [])
    ],
    targets: [
        .executableTarget(
            name: "minimal-server",
            dependencies: [
                .product(name: "AccessTokens", package: "TokenService"),
                .product(name: "AccessTokensOAuth", package: "TokenService"),
            ])
    ])
