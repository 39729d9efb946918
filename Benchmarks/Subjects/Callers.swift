package import AccessTokens
package import AccessTokensDispatch
import Dispatch
package import RaceGallery
import Synchronization

/// A thing to ask for a token.
package typealias Call = @Sendable () async throws -> Void

/// Asks so many times at once, each from a task of its own, until the last one has its answer.
///
/// The tasks are not awaited one by one: that would wake a second crowd as often as the first.
package func unstructured(_ callers: Int, _ call: @escaping Call) async throws {
    let countdown = Countdown(callers)
    await called { done in
        for _ in 0..<callers {
            Task {
                do { try await call() } catch { countdown.fail(error) }
                if countdown.leave() == 0 { done() }
            }
        }
    }
    try countdown.check()
}

/// How many of a crowd are left, and what went wrong.
private final class Countdown: Sendable {
    private let left: Atomic<Int>
    private let error = Mutex<(any Error)?>(nil)

    init(_ count: Int) {
        left = Atomic(count)
    }

    func leave() -> Int { left.subtract(1, ordering: .acquiringAndReleasing).newValue }

    func fail(_ failure: any Error) { error.withLock { $0 = failure } }

    func check() throws {
        if let error = error.withLock({ $0 }) { throw error }
    }
}

/// The same, with the children of one group.
package func grouped(_ callers: Int, _ call: @escaping Call) async throws {
    try await withThrowingDiscardingTaskGroup { group in
        for _ in 0..<callers { group.addTask { try await call() } }
    }
}

/// Waits for what ends in a call of `done`.
package func called(_ begin: (_ done: @escaping @Sendable () -> Void) -> Void) async {
    await unsafe withUnsafeContinuation { continuation in begin { unsafe continuation.resume() } }
}

/// A service of each design with a token that is valid for an hour.
package struct Warm: Sendable {
    package let floor = Floor(AccessToken("warm"))
    package let service = TokenService { _ in AccessToken("warm", lifetime: .seconds(3600)) }
    package let naive = ReentrantTokenService(loader: WarmLoader())
    package let stage3 = ThreadSafeTokenService(loader: WarmLoader())
    package let shim: AccessTokenService

    package init() async throws {
        shim = AccessTokenService(service: service)
        _ = try await service.retrieveToken()
        _ = try await naive.retrieveToken()
        await called { done in stage3.retrieveToken { _ in done() } }
    }
}

private struct WarmLoader: TokenLoader, AccessTokenLoader {
    var isRepeatable: Bool { false }

    @concurrent func loadToken(replacing previous: AccessToken?) async throws -> AccessToken {
        AccessToken("warm", lifetime: .seconds(3600))
    }

    func load(then handler: @escaping Handler) {
        handler(.success(AccessToken("warm", lifetime: .seconds(3600))))
    }
}

/// Keeps a value from being optimised away.
@usableFromInline
@inline(never)
package func use<Value>(_ value: Value) {}

/// What a caller keeps across a call.
@usableFromInline
package protocol Keepable: SendableMetatype {
    init()
}

package struct Nothing: Keepable {
    package init() {}
}

extension SIMD8: Keepable {}
extension SIMD16: Keepable {}
extension SIMD32: Keepable {}
extension SIMD64: Keepable {}

/// Changes a value in memory, so that a caller that does so before and after a call keeps it in its frame meanwhile.
@inlinable
@inline(never)
package func touch<Value>(_ value: inout Value) {
    unsafe withUnsafeMutableBytes(of: &value) { bytes in
        for index in bytes.indices.prefix(1) { unsafe bytes[index] &+= 1 }
    }
}

/// Keeps a value across a call; inlined, so that no frame comes between a caller and what it calls.
@inlinable
@inline(__always)
package func keeping<Kept: Keepable, Value>(_ kept: Kept.Type, _ call: () async throws -> Value) async rethrows {
    var kept = Kept()
    touch(&kept)
    use(try await call())
    touch(&kept)
}
