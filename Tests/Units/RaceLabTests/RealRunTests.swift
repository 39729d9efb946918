import AccessTokens
import AccessTokensTesting
import Foundation
import Testing

@testable import race_lab

/// Designs that share a server, which is scripted here.
@Suite struct `Designs on a real server` {
    static let callers = 20
    let options: Options.Server
    let loader = ScriptedLoader(isRepeatable: true)

    init() throws {
        options = .init(
            tokenURL: try #require(URL(string: "https://a.example/")), clientID: "me", callers: Self.callers, expiries: 0)
    }

    /// Answers requests, but none before this many are under way.
    private func answer(_ count: Int) -> Task<Void, any Error> {
        Task { [loader] in
            var calls: [ScriptedLoader.Call] = []
            for _ in 0..<count { calls.append(try await loader.nextCall()) }
            for (number, call) in calls.enumerated() { call.succeed(with: AccessToken("\(number)")) }
        }
    }

    @Test(arguments: [("naive actor", callers), ("stage 3", 1)])
    func `the naive actor sends a request for each concurrent caller, and stage 3 one for all`(_ name: String, requests: Int)
        async throws
    {
        let run = try #require(RealRun.others(with: loader).first { $0.name == name })
        let answering = answer(requests)
        let figures = await run.measure(options)
        try await answering.value
        #expect(figures.design == name && figures.requests == requests && figures.mostAtOnce == requests)
        #expect(figures.expiries == 0 && figures.failures == 0)
    }

    @Test func `this package's service sends one request for all callers, through the same counting loader`() async throws {
        let answering = answer(1)
        let summary = await RealRun.ours(with: loader, options) { _ in }
        try await answering.value
        let figures = try #require(summary.designs.first)
        #expect(figures.design == "TokenService" && figures.requests == 1 && figures.mostAtOnce == 1)
        #expect(summary.loads == 1 && summary.tokens == 1 && summary.error == nil)
    }

    @Test func `overlapping requests are one round, which counts when the last one ends if any brought a token`() async throws {
        let metered = MeteredLoader(loader)
        func load() -> Task<AccessToken, any Error> { Task { try await metered.loadToken(replacing: nil) } }
        var rounds = metered.rounds.makeAsyncIterator()
        for outcomes in [[true, true, false], [false], [false, true]] {
            let loads = outcomes.map { _ in load() }
            var calls: [ScriptedLoader.Call] = []
            for _ in outcomes { calls.append(try await loader.nextCall()) }
            for (call, isGood) in zip(calls, outcomes) {
                if isGood { call.succeed(with: AccessToken("a")) } else { call.fail(with: ScriptedFailure.transient) }
            }
            for load in loads { _ = await load.result }
        }
        for _ in 0..<2 { await rounds.next() }
        let count = metered.count
        #expect(count.requests == 6 && count.mostAtOnce == 3 && count.rounds == 2)
    }
}
