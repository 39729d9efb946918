/// Keeps a connection up for a screen: after a failure it tries again, after longer and longer pauses.
@MainActor package final class Reconnector {
    package enum State: Sendable {
        case stopped, connecting, connected, waiting
    }

    package private(set) var state = State.stopped
    private let connect: @Sendable () async throws -> Void
    private let checksAgain: Bool
    private var task: Task<Void, Never>?

    /// - Parameters:
    ///   - checksAgain: Whether an attempt checks if it was stopped when its answer arrives. Otherwise a stopped attempt still
    ///     shows it.
    ///   - connect: Returns when there is a connection, and throws when there is none.
    package init(checksAgain: Bool, connect: @escaping @Sendable () async throws -> Void) {
        self.checksAgain = checksAgain
        self.connect = connect
    }

    package func start() {
        guard task == nil else { return }
        task = Task {
            var pause = Duration.seconds(1)
            while !Task.isCancelled {
                state = .connecting
                let isConnected: Bool
                do {
                    try await connect()
                    isConnected = true
                } catch {
                    isConnected = false
                }
                if checksAgain, Task.isCancelled { return }
                state = isConnected ? .connected : .waiting
                if isConnected { return }
                try? await Task.sleep(for: pause)
                pause = min(pause * 2, .seconds(60))
            }
        }
    }

    package func stop() {
        task?.cancel()
        task = nil
        state = .stopped
    }
}
