// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation
import Foundation
import Interleavings
import InterleavingsEverything
import InterleavingsTesting
import Observation
import Testing

// The files shown in “Exploring code you can't change”, unchanged. The first file's test is meant to fail, so it doesn't run by
// itself: the suite at the end calls it.

@Suite(.disabled("the guide's own test runs below")) enum Untouched {
    @MainActor @Observable public final class SearchModel {
        public var text = "" {
            didSet { textDidChange() }
        }
        public private(set) var movies: [String] = []
        private let find: @Sendable (String) async throws -> [String]
        private var search: Task<Void, Never>?

        public init(find: @escaping @Sendable (String) async throws -> [String]) {
            self.find = find
        }

        private func textDidChange() {
            search?.cancel()
            search = Task {
                do {
                    try await Task.sleep(for: .milliseconds(300))
                    movies = try await find(text)
                } catch {
                    // The user typed on, or the network is away.
                }
            }
        }
    }

    @Suite(.exploring()) struct SearchTests {
        @Test func `shows what was typed last`() async throws {
            try await explore(driving: .everything) { simulation in
                let model = await SearchModel { text in
                    let answer = Task {
                        // The shorter the text, the more there is to find.
                        try await Task.sleep(for: text.count == 1 ? .seconds(2) : .seconds(1))
                        return ["movies for \(text)"]
                    }
                    return try await answer.value
                }
                simulation.spawn("user") { @MainActor in
                    model.text = "a"
                    try await Task.sleep(for: .milliseconds(500))
                    model.text = "alien"
                }
                try await simulation.settle()
                let movies = await model.movies
                try simulation.require(movies == ["movies for alien"], "it shows \(movies)")
            }
        }
    }
}

enum Mended {
    @MainActor @Observable public final class SearchModel {
        public var text = "" {
            didSet { textDidChange() }
        }
        public private(set) var movies: [String] = []
        private let find: @Sendable (String) async throws -> [String]
        private var search: Task<Void, Never>?

        public init(find: @escaping @Sendable (String) async throws -> [String]) {
            self.find = find
        }

        private func textDidChange() {
            search?.cancel()
            search = Task {
                do {
                    try await Task.sleep(for: .milliseconds(300))
                    let found = try await find(text)
                    if Task.isCancelled { return }
                    movies = found
                } catch {
                    // The user typed on, or the network is away.
                }
            }
        }
    }

    /// The guide's scenario with the corrected model.
    static func searches(_ simulation: Simulation) async throws {
        let model = await SearchModel { text in
            let answer = Task {
                try await Task.sleep(for: text.count == 1 ? .seconds(2) : .seconds(1))
                return ["movies for \(text)"]
            }
            return try await answer.value
        }
        simulation.spawn("user") { @MainActor in
            model.text = "a"
            try await Task.sleep(for: .milliseconds(500))
            model.text = "alien"
        }
        try await simulation.settle()
        let movies = await model.movies
        try simulation.require(movies == ["movies for alien"], "it shows \(movies)")
    }
}

@Suite struct `The guide to code that can't be changed` {
    private static func page(_ name: String = "ExploringCodeYouCantChange") throws -> String {
        let path = "Sources/InterleavingsEverything/InterleavingsEverything.docc/\(name).md"
        return try String(contentsOf: LinkTests.root.appending(path: path), encoding: .utf8)
    }

    @Test func `shows a test that fails, and the report that it prints`() async throws {
        let failure = await #expect(throws: ScheduleFailure.self) {
            try await Untouched.SearchTests().`shows what was typed last`()
        }
        // The page shows a debug build's report; a release build takes other steps.
        #if DEBUG && os(Linux) && arch(x86_64)
        let report = "\(try #require(failure))".replacing("Untouched.SearchModel", with: "SearchModel")
            .replacing("DocumentationTests/GuidesUntouchedExamples.swift:30", with: "Movies/SearchModel.swift:20")
        #expect(try Self.page().contains("```\n\(report)\n```"), "\(report)")
        #endif
    }

    @Test func `shows a repair that passes in every order, and the summary that says so`() async throws {
        let summary = try await explore(.exhaustive(), driving: .everything) { try await Mended.searches($0) }
        #expect(summary.ranAllOrdersWithinBounds)
        #if DEBUG
        #expect(try Self.page().contains("```\n\(summary)\n```"), "\(summary)")
        #endif
        try await explore(.exhaustive(delays: 3), time: .anytime, driving: .everything) { try await Mended.searches($0) }
    }

    @Test func `has a manifest with products that the package contains`() throws {
        let manifest = try String(contentsOf: LinkTests.root.appending(path: "Package.swift"), encoding: .utf8)
        let text = try Self.page()
        let products = text.matches(of: /\.product\(name: "(\w+)", package: "TokenService"\)/).map { String($0.1) }
        #expect(products == ["Interleavings", "InterleavingsEverything", "InterleavingsTesting"])
        for product in products { #expect(manifest.contains(".library(name: \"\(product)\"")) }
        let head = try #require(manifest.split(separator: "\n").first)
        #expect(text.contains("```\n\(head)\n"), "a whole manifest, with its tools")
    }
}
