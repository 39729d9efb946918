public import AccessTokens
import AccessTokensDispatch
import TokenServiceConcurrency

extension ScriptedLoader {
    /// One load, as the server sees it.
    ///
    /// All methods may be called concurrently, from any thread. They return before the service shows their effects.
    public final class Call: Sendable {
        /// The recipient of the answers.
        enum Reply: Sendable {
            /// No reply is possible: the load isn't waiting yet, has its answer, or was released.
            case never
            /// An async load: it gets the first answer, then the reply becomes `never`.
            case once(SingleResult<AccessToken>)
            /// A callback load: it gets every answer, until the call or the handler is released.
            case always(Handler)
        }

        private struct State: Sendable {
            var reply = Reply.never
            var isCancelled = false
            var priority = Task.currentPriority
            var cancellationWaiters = WaitingLine<Void, Void>()
        }

        private let state = Lock(State())
        private weak let loader: ScriptedLoader?

        /// The token to replace, whose refresh token is the grant.
        public let previous: AccessToken?

        init(replacing previous: AccessToken?, of loader: ScriptedLoader) {
            self.previous = previous
            self.loader = loader
        }

        /// Answers with a token.
        ///
        /// An async load ends with its first answer and ignores the others. A handler is called with each answer, on the calling
        /// thread, so a test can answer twice, like a badly behaved callback loader.
        public func succeed(with token: AccessToken) { answer(.success(token)) }

        /// Answers with an error, for example a ``ScriptedFailure``; otherwise like ``succeed(with:)``.
        public func fail(with error: any Error) { answer(.failure(error)) }

        /// Releases the handler of a callback load, called or not, so that it can be destroyed.
        ///
        /// Until then a handler lives as long as its call: an unanswered call lives as long as the loader, an answered one as
        /// long as the test keeps it, to answer again. An async load has no handler; this call does nothing to it.
        package func dropHandler() {
            let dropped = state.withLock { state -> Reply in
                guard case .always = state.reply else { return .never }
                defer { state.reply = .never }
                return state.reply
            }
            if case .always = dropped { loader?.close(self) }
        }

        /// Whether the load's task was cancelled, before or after its answer; never true for a callback load.
        public var isCancelled: Bool { state.withLock { $0.isCancelled } }

        /// Waits until the load's task is cancelled; returns at once if it is already.
        ///
        /// - Throws: `CancellationError`, at once, when the *waiting* task is or was cancelled.
        public func cancelled() async throws {
            try await state.wait(in: \.cancellationWaiters, as: ()) { $0.isCancelled ? .pass(()) : .wait() }
        }

        /// The priority of the load's task: its first one, or a higher one that it was raised to.
        ///
        /// A raise is visible on systems that report it (macOS 26, iOS 26 and their relatives, Linux), and only for an async
        /// load.
        package var priority: TaskPriority { state.withLock { $0.priority } }

        func watchingPriority(of load: () async throws -> AccessToken) async throws -> AccessToken {
            guard #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) else { return try await load() }
            return try await withTaskPriorityEscalationHandler(operation: load) { _, raised in
                state.withLock { $0.priority = max($0.priority, raised) }
            }
        }

        func open(_ reply: Reply) { state.withLock { $0.reply = reply } }

        func cancel() {
            let waiters = state.withLock { state in
                state.isCancelled = true
                return state.cancellationWaiters.take { true }
            }
            for waiter in waiters { waiter.answer.complete(with: .success(())) }
        }

        private func answer(_ answer: Result<AccessToken, any Error>) {
            let reply = state.withLock { state -> Reply in
                let reply = state.reply
                if case .once = reply { state.reply = .never }
                return reply
            }
            // Counted as answered before anything can see the answer.
            if case .never = reply {} else { loader?.close(self) }
            switch reply {
            case .never: break
            case .once(let load): load.complete(with: answer)
            case .always(let handler): handler(answer)
            }
        }
    }
}
