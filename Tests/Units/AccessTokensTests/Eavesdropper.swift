import AccessTokensTesting
import TokenServiceConcurrency

/// Notifies its listener of every job before it can run.
final class Eavesdropper: TaskExecutor {
    private let stage: Stage
    private let body = Lock<@Sendable () -> Void>({})

    init(_ stage: Stage) { self.stage = stage }

    func listen(_ body: @escaping @Sendable () -> Void) { self.body.withLock { $0 = body } }

    func enqueue(_ job: consuming ExecutorJob) {
        body.withLock { $0 }()
        stage.enqueue(job)
    }
}
