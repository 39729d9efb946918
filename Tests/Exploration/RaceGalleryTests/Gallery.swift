import AccessTokens
import AccessTokensTesting
import Dispatch
import RaceGallery

/// One caller's answer.
typealias Answer = Result<AccessToken, any Error>

/// The texts by which tests distinguish answers.
extension Log<Answer> {
    var tokens: [String] {
        entries.map { answer in
            switch answer {
            case .success(let token): token.value
            case .failure(let error): "\(error)"
            }
        }
    }
}

/// A third stage on a queue that the test waits for.
struct ThirdStage {
    let clock = ManualClock()
    let loader = ScriptedLoader()
    let queue = DispatchQueue(label: "gallery")
    let answers = Log<Answer>()
    var service: ThreadSafeTokenService?

    init() {
        service = ThreadSafeTokenService(loader: loader, queue: queue, clock: clock)
    }

    func ask() {
        service?.retrieveToken { [answers] in answers.append($0) }
        queue.sync {}
    }

    /// The next load's call, which the queue has begun.
    func nextCall() async throws -> ScriptedLoader.Call {
        queue.sync {}
        return try await loader.nextCall()
    }

    /// Answers a load and waits until the queue has dealt with it.
    func answer(_ call: ScriptedLoader.Call, with token: AccessToken) {
        call.succeed(with: token)
        queue.sync {}
    }
}
