import AccessTokens
import AccessTokensTesting
import Dispatch
import Testing
import TokenServiceConcurrency

extension Tag {
    /// Tests with real threads, for Thread Sanitizer.
    @Tag static var threads: Self
}

/// The service on the real pool and clock, with everything at once.
///
/// Other tests check the same step by step, without threads; these are for Thread Sanitizer.
@Suite("Guarantees 1–10 on real threads", .tags(.threads))
struct ThreadTests {
    /// Hundreds of other tests may delay a load for longer than its usual limit.
    private static let patient = RefreshPolicy(loadTimeout: .seconds(3_600))

    @Test func `callers by the thousand get one load's token`() async throws {
        let service = TokenService(policy: Self.patient) { _ in
            await Task.yield()
            return .hour("a")
        }
        let events = service.events()
        let tokens = try await withThrowingTaskGroup { group in
            for _ in 0..<2_000 { group.addTask { try await service.retrieveToken() } }
            return try await group.reduce(into: Set<String>()) { $0.insert($1.value) }
        }
        #expect(tokens == ["a"])
        var iterator = events.makeAsyncIterator()
        #expect(await iterator.next()?.name == .loadStarted)
        #expect(await iterator.next()?.name == .loadSucceeded)
    }

    @Test func `56: a storm of calls that ask for more than a valid token makes few loads`() async throws {
        for fails in [false, true] {
            let loads = Lock(0), start = ContinuousClock.now
            let service = TokenService(policy: Self.patient, isRepeatable: true) { _ in
                let number = loads.withLock { loads in
                    loads += 1
                    return loads
                }
                await Task.yield()
                if fails, number.isMultiple(of: 2) { throw ScriptedFailure.transient }
                return .hour("\(number)")
            }
            _ = try await service.retrieveToken()
            await withTaskGroup { group in
                for index in 1...3_000 {
                    group.addTask {
                        switch index % 3 {
                        case 0: _ = try? await service.reloadToken()
                        case 1: #expect((try? await service.retrieveToken(validFor: .seconds(1_000_000))) != nil)
                        default: #expect((try? await service.retrieveToken()) != nil)
                        }
                    }
                }
            }
            // The first one, and those of the calls that insist on one.
            let periods = Int(start.duration(to: .now) / .seconds(30)) + 1
            #expect(loads.withLock { $0 } <= 1 + 5 * periods)
        }
    }

    /// A load that ends while its callers are between taking their places and suspending, or later.
    @Test func `callers who come, leave and are answered at the same moment get one answer each`() async throws {
        for round in 0..<500 {
            let service = TokenService(policy: Self.patient) { _ in
                for _ in 0..<(round % 8) { await Task.yield() }
                if round.isMultiple(of: 3) { throw ScriptedFailure.transient }
                return .hour("a")
            }
            let callers = (0..<16).map { _ in Task { try await service.retrieveToken(within: .seconds(3_600)) } }
            // From a thread of the pool and from one that runs no task.
            callers[0].cancel()
            DispatchQueue.global().async { for index in 1..<4 { callers[index * 4].cancel() } }
            for (index, caller) in callers.enumerated() {
                let outcome = Self.outcome(of: await caller.result)
                let known = [round.isMultiple(of: 3) ? "loadFailed" : "token"] + (index.isMultiple(of: 4) ? ["cancelled"] : [])
                #expect(known.contains(outcome), "round \(round), caller \(index): \(outcome)")
            }
        }
    }

    /// Every caller ends with a token or with a known error; no token is handed out after its refusal or a sign-out.
    @Test(arguments: [1, 2, 3, 4])
    func `each call ends with a token or a known error under concurrent cancellations, refusals, sign-ins and sign-outs`(
        seed: UInt64
    ) async throws {
        let server = SimulatedAuthorizationServer(tokenLifetime: .milliseconds(20))
        let service = TokenService(environment: .init(seed: seed), loader: server.loader)
        let outcomes = Log<String>()
        await withDiscardingTaskGroup { group in
            for worker in 0..<8 {
                group.addTask {
                    for round in 0..<200 {
                        await Self.act((worker &* 31 &+ round) % 16, on: service, outcomes)
                    }
                }
            }
        }
        #expect(outcomes.entries.count == 8 * 200)
        let known: Set = [
            "token", "cancelled", "reset", "loadFailed", "loadTimedOut", "tokenExpiredOnArrival", "tooManyInvalidations",
            "deadlineExceeded", "done",
        ]
        #expect(Set(outcomes.entries).isSubset(of: known), "\(Set(outcomes.entries).subtracting(known))")
        // A later caller is served. On a busy machine 20 ms may pass before its token arrives.
        _ = await service.reset()
        let last = Self.outcome(of: await Task { try await service.retrieveToken() }.result)
        #expect(["token", "tokenExpiredOnArrival"].contains(last), "\(last)")
    }

    private static func act(_ kind: Int, on service: TokenService, _ outcomes: Log<String>) async {
        switch kind {
        case 0:
            _ = await service.reset()
            outcomes.append("done")
        case 1:
            await service.replace(with: AccessToken("given", lifetime: .milliseconds(5)))
            outcomes.append("done")
        case 2, 3:
            if let token = service.cachedToken { await service.invalidate(token) }
            outcomes.append("done")
        case 4:
            await service.retryNow()
            outcomes.append("done")
        case 5, 6:
            let caller = Task { try await service.retrieveToken() }
            caller.cancel()
            outcomes.append(outcome(of: await caller.result))
        case 7:
            outcomes.append(outcome(of: await Task { try await service.retrieveToken(within: .milliseconds(1)) }.result))
        default:
            outcomes.append(outcome(of: await Task { try await service.retrieveToken() }.result))
        }
    }

    private static func outcome(of result: Result<AccessToken, any Error>) -> String {
        switch result {
        case .success: "token"
        case .failure(is CancellationError): "cancelled"
        case .failure(let error as TokenServiceError): "\(error.code)"
        case .failure(let error): "\(error)"
        }
    }
}
