import AccessTokens
import AccessTokensDispatch
import Interleavings

/// What callers do, and what is noted of it.
extension World {
    /// Asks with async, and notes the answer.
    @discardableResult
    func ask(_ service: TokenService, by caller: String, within limit: Duration?) async -> AccessToken? {
        let question = begin(caller, isCallback: false, limit)
        let result: Result<AccessToken, any Error>
        do { result = .success(try await service.retrieveToken(within: limit)) } catch { result = .failure(error) }
        end(question, with: result)
        return try? result.get()
    }

    /// Asks with a handler, and waits for it.
    func ask(_ shim: AccessTokenService, by caller: String) async -> AccessToken? {
        let answer = Answer()
        let question = begin(caller, isCallback: true, nil)
        shim.retrieveToken { result in
            // Noted where it is called, not where it is waited for.
            self.end(question, with: result)
            answer.give(result)
        }
        return try? await answer.value()
    }

    func invalidate(_ token: AccessToken, in service: TokenService) async {
        let index = facts.withLock { facts in
            facts.invalidations.append(Facts.Invalidation(token: token, began: facts.tick()))
            return facts.invalidations.count - 1
        }
        simulation.log("invalidates \(token.value)")
        await service.invalidate(token)
        facts.withLock { $0.invalidations[index].ended = $0.tick() }
    }

    func signOut(of service: TokenService) async {
        let fence = begin(fenceWith: nil)
        simulation.log("resets")
        _ = await service.reset()
        end(fence: fence)
    }

    func replace(in service: TokenService) async {
        let token = AccessToken("replacement \(facts.withLock { $0.fences.count })", lifetime: .seconds(3600))
        let fence = begin(fenceWith: token)
        simulation.log("replaces")
        await service.replace(with: token)
        end(fence: fence)
    }

    func note(cancelled caller: String) {
        simulation.log("cancels \(caller)")
        facts.withLock { facts in
            // Also those that it has not asked yet.
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

    private func begin(fenceWith token: AccessToken?) -> Int {
        facts.withLock { facts in
            facts.fences.append(Facts.Fence(began: facts.tick(), token: token))
            return facts.fences.count - 1
        }
    }

    private func end(fence: Int) {
        facts.withLock { $0.fences[fence].ended = $0.tick() }
    }
}
