import TokenServiceConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension TokenService {
    /// Creates a service that shares its grant with others: in this process, in others, or on other hosts.
    ///
    /// All of them use the same record, see one load, and adopt what it brings. A refresh token is presented only after the record
    /// says so, and what the server answers is saved before any caller gets it. Read *Several processes, one sign-in* first: a
    /// server with a grace period protects a session better than any client can.
    ///
    /// - Parameters:
    ///   - policy: When tokens are refreshed, how long loads may take, how failures are paced.
    ///   - sharedStore: Where the grant lives. Asked at the first miss and before each load; a valid token needs no look.
    ///   - sharing: How long other processes' marks are respected, how often callers look for a sign-out, and how records
    ///     are encrypted.
    ///   - environment: Clocks, jitter and executors; tests replace them.
    ///   - onDiscard: Called with each token that the service gives up although its grant may still be good at the server.
    ///   - loader: What gets a new token.
    public init(
        policy: RefreshPolicy = RefreshPolicy(),
        sharedStore: any SharedTokenStore,
        sharing: TokenSharing = TokenSharing(),
        environment: Environment = Environment(),
        onDiscard: (@Sendable (DiscardedGrant) async -> Void)? = nil,
        loader: some TokenLoader
    ) {
        self.init(
            policy: policy, store: nil, environment: environment, onDiscard: onDiscard, loader: loader, tether: nil, lender: nil,
            shared: (sharedStore, sharing))
    }

    /// Performs a flight of a shared grant, whose steps ``SharedFlight`` decides.
    ///
    /// Its task is never cancelled: a token that has been loaded is saved, whatever has become of its callers. Only the loader's own
    /// task can be cancelled.
    func share(_ flight: Machine.Flight, by session: SharedSession) {
        let setting = setting(of: flight, in: session)
        let membership = membershipOfFlight(flight.id)
        let priority = max(Task.currentPriority, lobby.withLock { $0.urgency })
        Task.detached(on: executor, priority: priority) {
            let ending = await LoadMembership.$current.withValue(membership) {
                await self.perform(setting, flight, by: session, membership)
            }
            await self.finish(flight, ending)
        }
    }

    private func setting(of flight: Machine.Flight, in session: SharedSession) -> SharedFlight.Setting {
        let now = clock.now()
        let refused = machine.rejections.tokens.filter { machine.rejections.contains($0.token, at: now) }
        return SharedFlight.Setting(
            owner: session.owner, flight: flight.id, policy: machine.policy, transportLimit: session.sharing.transportLimit,
            doubt: session.sharing.doubt, isRepeatable: machine.isRepeatable, deadline: flight.deadline,
            isRefresh: machine.state.cached != nil, isLook: !flight.isLoading, memory: flight.previous,
            refused: Set(refused.map(\.token.value)),
            jitter: Double.random(in: 0..<1))
    }

    private nonisolated func perform(
        _ setting: SharedFlight.Setting, _ flight: Machine.Flight, by session: SharedSession, _ membership: LoadMembership
    ) async -> SharedFlight.Ending {
        // A sign-in or sign-out that the store has yet to hear of comes first; without it, nothing in the store counts.
        var unsettled: (any Error)?
        do { try await session.settle() } catch { unsettled = error }
        await handOverDisplaced(in: session)
        var setting = setting
        setting.holder = await session.holder()
        let beginning = session.begin(isLook: setting.isLook)
        (setting.strays, setting.isRetry) = (beginning.strays, beginning.isRetry)
        var shared = SharedFlight(setting, knowing: beginning.knowledge)
        var step = SharedFlight.Step.read
        var wokenAt: SharedRecord.Revision?
        while true {
            let event: SharedFlight.Event
            do {
                switch step {
                case .read:
                    if let unsettled { throw unsettled }
                    event = .read(try await session.read())
                case .swap(let record, let revision): event = try await session.swap(record, ifAt: revision)
                case .wait(let revision, let rest):
                    let end = rest.map { min(clock.now() + $0, flight.deadline) } ?? flight.deadline
                    // Who was woken early although nothing had changed looks once a second from now on.
                    if revision != nil, revision == wokenAt {
                        await session.pause(for: min(.seconds(1), max(end - clock.now(), .zero)))
                    } else {
                        await session.wait(from: revision, until: end)
                        wokenAt = clock.now() < end ? revision : nil
                    }
                    event = .waited
                case .pause(let duration):
                    await session.pause(for: duration)
                    event = .waited
                case .load(let previous): event = await load(previous, for: flight, membership)
                case .end(let ending): return ending
                }
            } catch {
                event = .storeFailed(.store(error))
            }
            step = shared.next(event, at: session.moment, isAbandoned: membership.hasEnded)
            session.learn(shared.knowledge, since: beginning.fences)
        }
    }

    /// Runs the loader in a task of its own, which a fence or a limit may cancel.
    private func load(
        _ previous: AccessToken?, for flight: Machine.Flight, _ membership: LoadMembership
    ) async -> SharedFlight.Event {
        let task = Task.detached(on: executor) { [loader, loadExecutor] in
            await LoadMembership.$current.withValue(membership) {
                await Result {
                    try await withTaskExecutorPreference(loadExecutor) {
                        // Others may have stopped to respect the mark of a process that was stopped itself.
                        guard !membership.hasEnded, self.clock.now() < flight.deadline else { throw NotSent() }
                        return try await loader.loadToken(replacing: previous)
                    }
                }
            }
        }
        // What can be cancelled, and made more urgent, is the loader.
        let handle = Task.detached(on: executor) {
            await withTaskCancellationHandler {
                _ = await task.value
            } onCancel: {
                task.cancel()
            }
        }
        begun(handle, for: flight, priority: Task.currentPriority)
        defer { loads.removeAll { $0.flight == flight.id } }
        switch await task.value {
        case .success(let token): return .loaded(token)
        case .failure(let error): return .failed(SharedFlight.Failure(error))
        }
    }

    /// Operations of the store tell those who wait for their fences what these have put aside; without one, this does.
    private func handOverDisplaced(in session: SharedSession) {
        if machine.storage.operations.isEmpty { handOver(session.takeDisplaced()) }
    }

    private func finish(_ flight: Machine.Flight, _ ending: SharedFlight.Ending) {
        if let token = ending.discarded {
            let isSignedOut = if case .signedOut = ending.outcome { true } else { flight.generation < machine.lastReset }
            let isReplaced = flight.generation < machine.generation
            discard(DiscardedGrant(token: token, reason: isSignedOut ? .signedOut : isReplaced ? .replaced : .superseded))
        }
        if let stray = ending.stray, let session {
            // Known to the flight that the next step may start.
            session.note(stray)
            Task.detached(on: executor) {
                await session.takeBack(stray)
                // The service may be let go from now on.
                await self.step { _, _ in }
            }
        }
        step { $0.shared(ending.outcome, by: flight.id, at: $1) }
    }
}

extension SharedFlight.Failure {
    /// What a loader threw: if that says no more than "try again", the answer may have been lost.
    init(_ error: any Error) {
        let salvaged = (error as? SalvagedGrant)?.grant
        let (wrapped, retryAfter) = TokenServiceError.wrapping(error)
        self.init(
            error: wrapped, retryAfter: retryAfter, salvaged: salvaged,
            isDefinite: wrapped.remedy != .retry || retryAfter != nil || salvaged != nil, isUnsent: error is NotSent)
    }
}
