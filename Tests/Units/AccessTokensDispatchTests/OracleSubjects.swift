import AccessTokens
import AccessTokensDispatch
import AccessTokensTesting
import Dispatch
import RaceGallery

/// One step of a case.
enum Step: Sendable {
    /// The next caller, numbered from 1.
    case call
    /// The oldest load that has no answer gets one.
    case succeed(String), fail
    /// The load answered last gets another answer.
    case again(String)
    case wait(Int)
    case signOut
    /// The service's last owner releases it.
    case release
}

/// A service under test: the parts in which the three services differ.
protocol Subject: AnyObject {
    var clock: ManualClock { get }
    var loader: ScriptedLoader { get }
    var stage: Stage { get }
    func call(then log: @escaping @Sendable (Result<AccessToken, any Error>) -> Void)
    func signOut()
    func release()
    /// Runs until all tasks wait.
    func settle()
}

extension Subject {
    /// Performs a case and returns each caller's answer, in order.
    func perform(_ steps: [Step]) -> [String] {
        let log = Log<String>()
        var callers = 0
        var last: ScriptedLoader.Call?
        for step in steps {
            switch step {
            case .call:
                callers += 1
                call { [callers] in log.append("\(callers) \(text($0))") }
            case .succeed(let name):
                last = load()
                last?.succeed(with: .hour(name))
            case .fail:
                last = load()
                last?.fail(with: ScriptedFailure.transient)
            case .again(let name): last?.succeed(with: .hour(name))
            case .wait(let seconds): clock.advance(by: .seconds(seconds))
            case .signOut: signOut()
            case .release: release()
            }
            settle()
        }
        return log.entries
    }

    /// The newest load, if this design started one: an older one without an answer was given up.
    private func load() -> ScriptedLoader.Call? {
        var newest: ScriptedLoader.Call?
        while true {
            let next = stage.start { [loader] in try await loader.nextCall() }
            guard let call = next.value else {
                next.cancel()
                stage.run()
                break
            }
            newest = call
        }
        return newest
    }
}

private func text(_ result: Result<AccessToken, any Error>) -> String {
    switch result {
    case .success(let token): token.value
    case .failure(let error as TokenServiceError) where error.code == .reset: "reset"
    case .failure(let error as TokenServiceError) where error.code == .loadTimedOut: "timed out"
    case .failure: "failed"
    }
}

final class Stage3Subject: Subject {
    let clock = ManualClock(), loader = ScriptedLoader(), stage = Stage()
    private let queue = DispatchQueue(label: "stage 3")
    private var service: ThreadSafeTokenService?

    init() { service = ThreadSafeTokenService(loader: loader, queue: queue, clock: clock) }

    func call(then log: @escaping @Sendable (Result<AccessToken, any Error>) -> Void) { service?.retrieveToken(then: log) }
    func signOut() { service?.signOut() }
    func release() { service = nil }
    // Twice, since a load's answer hops onto the queue again.
    func settle() { for _ in 0..<2 { queue.sync {} } }
}

final class ShimSubject: Subject {
    let clock: ManualClock, loader: ScriptedLoader, stage: Stage
    private let queue: ManualQueue
    private var shim: AccessTokenService?

    init() {
        let scene = ShimScene()
        (clock, loader, stage, queue, shim) = (scene.clock, scene.loader, scene.stage, scene.queue, scene.shim)
    }

    func call(then log: @escaping @Sendable (Result<AccessToken, any Error>) -> Void) { shim?.retrieveToken(then: log) }
    func signOut() { shim?.reset() }
    func release() { shim = nil }
    func settle() {
        stage.run()
        queue.run()
    }
}

final class ServiceSubject: Subject {
    let clock = ManualClock(), loader = ScriptedLoader(), stage = Stage()
    private var service: TokenService?

    init() { service = TokenService(environment: .driven(by: stage, clock: clock), loader: loader) }

    func call(then log: @escaping @Sendable (Result<AccessToken, any Error>) -> Void) {
        guard let service else { return }
        _ = stage.start {
            do { log(.success(try await service.retrieveToken())) } catch { log(.failure(error)) }
        }
    }

    func signOut() {
        guard let service else { return }
        _ = stage.start { _ = await service.reset() }
    }

    func release() { service = nil }
    func settle() { stage.run() }
}
