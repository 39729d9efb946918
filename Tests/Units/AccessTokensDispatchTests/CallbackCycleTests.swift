import AccessTokens
import AccessTokensDispatch
import AccessTokensTesting
import Testing
import TokenServiceConcurrency

/// A loader that gets its token from another service, with a completion handler.
private final class AskingLoader: AccessTokenLoader {
    let neighbour = Lock<AccessTokenService?>(nil)

    func load(then handler: @escaping Handler) {
        neighbour.withLock { $0 }?.retrieveToken(then: handler)
    }
}

@Suite("Guarantee 17: loads with completion handlers that would wait for each other end at once")
struct CallbackCycleTests {
    @Test(arguments: 1...4, [false, true])
    func `services whose loaders ask each other in a ring get a clear error`(count: Int, areAllCalled: Bool) {
        let stage = Stage(), clock = ManualClock(), queue = ManualQueue()
        let loaders = (0..<count).map { _ in AskingLoader() }
        let shims = loaders.map { loader in
            let service = TokenService(environment: .driven(by: stage, clock: clock), loader: loader.tokenLoader)
            return AccessTokenService(service: service, enqueue: queue.async)
        }
        for (index, loader) in loaders.enumerated() {
            loader.neighbour.withLock { $0 = shims[(index + 1) % count] }
        }
        let causes = Log<TokenServiceError.Code?>()
        for shim in areAllCalled ? shims[...] : shims.prefix(1) {
            shim.retrieveToken { result in
                guard case .failure(let error) = result else { return causes.append(nil) }
                var cause = error as? TokenServiceError
                while let next = cause?.underlying as? TokenServiceError { cause = next }
                causes.append(cause?.code)
            }
        }
        for _ in 0..<(4 * count) {
            stage.run()
            queue.run()
        }
        #expect(causes.entries == Array(repeating: .loaderWaitsForItself, count: areAllCalled ? count : 1))
        #expect(clock.now.offset == .zero)
        loaders.forEach { loader in loader.neighbour.withLock { $0 = nil } }
    }
}
