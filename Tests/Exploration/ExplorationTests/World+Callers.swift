import AccessTokens
import AccessTokensDispatch
import Interleavings
import TokenServiceConcurrency

/// The callers' operations, which are recorded.
extension World {
    /// Asks with the async method, and notes the answer.
    @discardableResult
    func ask(_ service: TokenService, by caller: String, within limit: Duration?) async -> AccessToken? {
        let question = begin(caller, isCallback: false, limit)
        let result: Result<AccessToken, any Error>
        do { result = .success(try await service.retrieveToken(within: limit)) } catch { result = .failure(error) }
        end(question, with: result)
        return try? result.get()
    }

    /// Asks with a handler, and waits for it.
    func ask(_ shim: AccessTokenService, by caller: String, within limit: Duration?) async -> AccessToken? {
        let answer = SingleResult<AccessToken>()
        let question = begin(caller, isCallback: true, limit)
        shim.retrieveToken(within: limit) { result in
            // Note the answer when the handler is called, not when the caller continues.
            self.end(question, with: result)
            answer.complete(with: result)
        }
        return try? await answer.value()
    }

    func invalidate(_ token: AccessToken, in service: TokenService) async {
        let index = begin(invalidating: token)
        await service.invalidate(token)
        end(invalidation: index)
    }

    /// Doesn't wait: later calls are ordered after it anyway.
    func invalidate(_ token: AccessToken, in shim: AccessTokenService) {
        let index = begin(invalidating: token, isCallback: true)
        shim.invalidate(token) { self.end(invalidation: index) }
    }

    func signOut(of service: TokenService) async {
        let fence = begin(fenceWith: nil)
        simulation.log("resets")
        _ = await service.reset()
        end(fence: fence)
    }

    func signOut(of shim: AccessTokenService) {
        let fence = begin(fenceWith: nil, isCallback: true)
        simulation.log("resets")
        shim.reset { _ in self.end(fence: fence) }
    }

    func replace(in service: TokenService) async {
        let token = newReplacement()
        let fence = begin(fenceWith: token)
        simulation.log("replaces")
        await service.replace(with: token)
        end(fence: fence)
    }

    func replace(in shim: AccessTokenService) {
        let token = newReplacement()
        let fence = begin(fenceWith: token, isCallback: true)
        simulation.log("replaces")
        shim.replace(with: token) { _ in self.end(fence: fence) }
    }

    private func newReplacement() -> AccessToken {
        AccessToken("replacement \(facts.withLock { $0.fences.count })", lifetime: .seconds(3600))
    }

    func note(cancelled caller: String) {
        simulation.log("cancels \(caller)")
        facts.withLock { facts in
            // Including questions that it hasn't asked yet.
            for index in facts.questions.indices
            where facts.questions[index].caller == caller && facts.questions[index].ended == nil {
                facts.questions[index].cancelledAt = time
            }
            facts.cancelled[caller] = time
        }
    }

    private func begin(_ caller: String, isCallback: Bool, _ limit: Duration?) -> Int {
        simulation.log("asks")
        return facts.withLock { facts in
            facts.questions.append(
                Facts.Question(
                    caller: caller, isCallback: isCallback, limit: limit, began: facts.tick(), beganAt: time,
                    cancelledAt: facts.cancelled[caller].map { max($0, time) }))
            return facts.questions.count - 1
        }
    }

    private func end(_ question: Int, with result: Result<AccessToken, any Error>) {
        simulation.log("gets \(result.map(\.value))")
        facts.withLock { facts in
            facts.questions[question].answers += 1
            facts.questions[question].ended = facts.tick()
            facts.questions[question].endedAt = time
            facts.questions[question].result = result
        }
    }

    private func begin(invalidating token: AccessToken, isCallback: Bool = false) -> Int {
        simulation.log("invalidates \(token.value)")
        return facts.withLock { facts in
            facts.invalidations.append(Facts.Invalidation(token: token, began: facts.tick(), isCallback: isCallback))
            return facts.invalidations.count - 1
        }
    }

    private func end(invalidation: Int) {
        facts.withLock { $0.invalidations[invalidation].ended = $0.tick() }
    }

    private func begin(fenceWith token: AccessToken?, isCallback: Bool = false) -> Int {
        facts.withLock { facts in
            facts.fences.append(Facts.Fence(began: facts.tick(), token: token, isCallback: isCallback))
            return facts.fences.count - 1
        }
    }

    private func end(fence: Int) {
        facts.withLock { $0.fences[fence].ended = $0.tick() }
    }
}
