import AccessTokens
import DataLoading
import Dispatch
import Foundation
import TestBudgets
import Testing

@testable import ArticlesInSwift5
@testable import ArticlesInSwift6

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The page “From the articles' lines to ours”: its files, and callers as the articles' readers have written them.
@Suite(.timeLimit(.minutes(10)), .inRealTime) @MainActor struct `From the articles' lines to ours` {
    private static let page = "Sources/AccessTokens/AccessTokens.docc/FromTheArticles.md"
    private let log = GuideLog()

    private static func text(_ path: String) throws -> String {
        try String(contentsOf: LinkTests.root.appending(path: path), encoding: .utf8)
    }

    private static func source(_ file: String, inSwift version: Int) throws -> String {
        try text("Tests/Documents/Migration/ArticlesInSwift\(version)/\(file).swift")
    }

    @Test(arguments: ["ArticleResult", "ArticleTokens", "ArticleRequests", "ArticleMovies"])
    func `each file is the same in both language modes, and the page shows the whole`(file: String) throws {
        let source = try Self.source(file, inSwift: 5)
        #expect(try Self.source(file, inSwift: 6) == source)
        let page = try Self.text(Self.page)
        // On Linux there is one import more.
        let shown = source.replacing("\n#if canImport(FoundationNetworking)\nimport FoundationNetworking\n#endif\n", with: "")
        #expect(page.contains("```swift\n\(shown)```"), "\(file)")
    }

    @Test func `the page counts the callers' lines, and those that differ in Swift 6 mode`() throws {
        let (old, new) = (try Self.source("ArticleCallers", inSwift: 5), try Self.source("ArticleCallers", inSwift: 6))
        let lines = old.components(separatedBy: "\n").dropLast(), others = new.components(separatedBy: "\n").dropLast()
        try #require(lines.count == others.count)
        let differing = zip(lines, others).count { $0 != $1 }
        let page = try Self.text(Self.page).replacing("\n", with: " ")
        #expect(page.contains("\(differing) of the \(lines.count) lines of callers differ"))
    }

    // Outside the main actor, as the handlers are.
    @Test nonisolated func `the first article's callers get tokens and errors in Swift 5 mode`() async throws {
        let answers = log
        for (address, answer) in [("https://id.example/a", "movie with token of /a"), ("ftp://id.example", "error")] {
            let loader = ArticlesInSwift5.LoginAPI(url: try #require(URL(string: address)))
            let queue = DispatchQueue(label: "test")
            let api = ArticlesInSwift5.MovieAPI(loader: loader, queue: queue)
            let title = await withCheckedContinuation { done in
                api.loadTitle { done.resume(returning: $0.value ?? "error") }
            }
            #expect(title == answer)
            // The miss is over, so the queue has what there is.
            api.prefetch { answers.add("\($0)") }
            queue.sync {}
        }
        #expect(answers.lines.first == "true")
    }

    @Test nonisolated func `the first article's callers get tokens and errors in Swift 6 mode`() async throws {
        let answers = log
        for (address, answer) in [("https://id.example/a", "movie with token of /a"), ("ftp://id.example", "error")] {
            let loader = ArticlesInSwift6.LoginAPI(url: try #require(URL(string: address)))
            let queue = DispatchQueue(label: "test")
            let api = ArticlesInSwift6.MovieAPI(loader: loader, queue: queue)
            let title = await withCheckedContinuation { done in
                api.loadTitle { done.resume(returning: $0.value ?? "error") }
            }
            #expect(title == answer)
            api.prefetch { answers.add("\($0)") }
            queue.sync {}
        }
        #expect(answers.lines.first == "true")
    }

    @Test func `async callers and the first article's share a token`() async throws {
        let loader = ArticlesInSwift6.LoginAPI(url: try #require(URL(string: "https://id.example/a")))
        let service = ArticlesInSwift6.AccessTokenService(loader: loader, queue: .main)
        let token = try await service.tokens.retrieveToken()
        let screen = ArticlesInSwift6.ProfileViewController(service: service)
        await withCheckedContinuation { done in screen.appear { done.resume() } }
        #expect(screen.title == token.value && token.value == "token of /a")
    }

    @Test func `the second article's screens get their answers on the main actor, in both language modes`() async throws {
        let host = try StubbedHost { arrival in
            .init(body: arrival.query == "genre=drama&section=2" ? #"[{"title": "Brazil"}]"# : "[]")
        }
        let factory5 = ArticlesInSwift5.MovieLoaderFactory(cache: .shared, session: host.session)
        let screen5 = ArticlesInSwift5.CategoryViewController(
            category: .init(genre: "drama", url: host.url), loaderFactory: factory5)
        await withCheckedContinuation { done in screen5.loadMovies(atSectionIndex: 2) { done.resume() } }
        let factory6 = ArticlesInSwift6.MovieLoaderFactory(cache: .shared, session: host.session)
        let screen6 = ArticlesInSwift6.CategoryViewController(
            category: .init(genre: "drama", url: host.url), loaderFactory: factory6)
        await withCheckedContinuation { done in screen6.loadMovies(atSectionIndex: 2) { done.resume() } }
        screen6.openRecommendations()
        let next = try #require(screen6.next as? ArticlesInSwift6.CategoryViewController)
        await withCheckedContinuation { done in next.loadMovies(atSectionIndex: 3) { done.resume() } }
        #expect([screen5.title, screen6.title, next.title] == ["Brazil", "Brazil", "no movies"])
    }

    @Test func `a data loader of the second article can be made without any argument`() async throws {
        // Nothing is sent: the address is none of the web.
        let screen = ArticlesInSwift5.TodoListViewController(url: try #require(URL(string: "file:///")))
        await withCheckedContinuation { done in screen.loadItems { done.resume() } }
        #expect(screen.title == "no list")
    }

    @Test func `a movie loader's release ends only its own requests, and their handlers aren't called`() async throws {
        let host = try StubbedHost { _ in .init(body: "[]") }
        let factory = ArticlesInSwift6.MovieLoaderFactory(cache: .shared, session: host.session)
        let category = ArticlesInSwift6.Category(genre: "drama", url: host.url)
        let answers = log
        var loaders = (0...1).map { _ in factory.makeLoader() }
        for (number, loader) in loaders.enumerated() {
            loader.loadMovies(in: category, sectionIndex: number) { _ in answers.add("\(number)") }
        }
        loaders.removeFirst()
        await withCheckedContinuation { done in
            loaders[0].loadMovies(in: category, sectionIndex: 2) { _ in done.resume() }
        }
        loaders[0].cancelAllRequests()
        #expect(!answers.lines.contains("0"))
    }
}
