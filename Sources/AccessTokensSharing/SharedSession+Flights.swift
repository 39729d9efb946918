import AccessTokens
import TokenServiceConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension SharedSession: GrantSession {
    var checkEvery: Duration? { sharing.checkEvery }

    @concurrent func signInState(_ plan: SharedFlightPlan) async -> SignInState {
        // The record may not show the last sign-in or sign-out yet.
        if let fence = lastFence { return SignInState(fence.token == nil ? .signedOut : .signedIn) }
        do {
            guard let record = try await read()?.record, let token = record.token else { return SignInState(.signedOut) }
            let flight = SharedFlight(SharedFlight.Setting(owner: owner, plan: plan))
            if flight.isGood(record, at: moment) { return SignInState(.validToken) }
            guard token.refreshToken != nil, begin(isCheck: true).knowledge.refused != record.generation else {
                return SignInState(.signedOut)
            }
            return SignInState(.signedIn)
        } catch {
            return SignInState(.unknown, error: TokenServiceError(.storeFailed, underlying: error))
        }
    }

    /// Performs a flight, whose steps ``SharedFlight`` decides, one after another.
    @concurrent func perform(_ run: SharedFlightRun) async -> SharedFlightEnd {
        let (ending, learnsLast) = await ending(of: run)
        // A save whose response was lost may have succeeded before a sign-in or a sign-out replaced the record.
        let discarded = ending.discarded.flatMap { hasFound($0) ? nil : $0 }
        var end = SharedFlightEnd(ending.outcome, discarded: discarded, learns: learnsLast)
        guard let stray = ending.stray else { return end }
        // Note it now, so that the service's next flight knows about it.
        note(stray)
        end.afterwards = { await self.takeBack(stray) }
        return end
    }

    /// Performs the steps; returns how the flight ended, and what to record if the service accepts that.
    private func ending(
        of run: SharedFlightRun
    ) async -> (ending: SharedFlight.Ending, learns: (@Sendable () -> Void)?) {
        // Write a sign-in or sign-out that hasn't reached the store first.
        var unsettled: (any Error)?
        do { try await settle() } catch { unsettled = error }
        guard await run.handOverDisplaced() else { return (SharedFlight.Ending(outcome: .gaveUp), nil) }
        let holder = await holder(), beginning = begin(isCheck: run.plan.isCheck)
        let setting = SharedFlight.Setting(
            owner: owner, plan: run.plan, holder: holder, transportLimit: sharing.transportLimit, doubt: sharing.doubt,
            serverGrace: sharing.serverGrace, isRetry: beginning.isRetry, strays: beginning.strays,
            jitter: Double.random(in: 0..<1))
        var flight = SharedFlight(setting, knowing: beginning.knowledge)
        // Until this service's sign-in or sign-out is written, the store's contents are outdated.
        var step = unsettled == nil ? flight.begin(at: moment) : .read
        var wokenAt: SharedRecord.Revision?
        while true {
            if case .end(let ending) = step { return (ending, nil) }
            let event: SharedFlight.Event
            do {
                if let unsettled, step == .read { throw unsettled }
                event = try await performStep(step, of: run, sendingBy: flight.sendingEnd, wokenAt: &wokenAt)
            } catch {
                event = .storeFailed(.store(error))
            }
            var now = moment
            now.isAbandoned = run.isAbandoned
            step = flight.next(event, at: now)
            if case .end(let ending) = step, case .signedOut = ending.outcome {
                // Not learnt yet: if the service doesn't accept the sign-out, the next flight must find it again.
                return (ending, { [knowledge = flight.knowledge] in self.learn(knowledge, since: beginning.fences) })
            }
            learn(flight.knowledge, since: beginning.fences)
            if let reserve = flight.takeReserve(), let token = reserve.token {
                await run.keepInReserve(token, age: reserve.age(at: moment.wall))
            }
        }
    }

    /// Performs a step and returns its outcome.
    ///
    /// Separate from the loop over the steps, because each `await` in there would add another copy of the loop.
    @inline(never)
    private func performStep(
        _ step: SharedFlight.Step, of run: SharedFlightRun, sendingBy end: Duration?, wokenAt: inout SharedRecord.Revision?
    ) async throws -> SharedFlight.Event {
        switch step {
        case .read: return .read(try await read())
        case .swap(let record, let revision): return try await swap(record, ifAt: revision)
        case .wait(let revision, let rest):
            let now = moment.now
            let limit = [rest.map { now + $0 }, run.plan.deadline].compactMap(\.self).min() ?? now
            // After a wake-up without a change, read only once a second.
            if revision != nil, revision == wokenAt {
                await pause(for: min(.seconds(1), max(limit - moment.now, .zero)))
            } else {
                let event = await wait(from: revision, until: limit)
                // Nor does a wait that only looks whether the holder still runs begin with short pauses each time.
                let isCheck = limit <= now + RefreshPolicy.checkPause
                wokenAt = isCheck || moment.now < limit ? revision : nil
                return event
            }
            return .waited
        case .pause(let duration):
            await pause(for: duration)
            return .waited
        case .load(let previous):
            switch await run.load(replacing: previous, sendingBy: end) {
            case .success(let token): return .loaded(token)
            case .failure(let error): return .failed(FlightFailure(wrapping: error))
            }
        // Nothing remains to be done.
        case .end: return .waited
        }
    }
}

/// A mark whose load no longer sends anything; it is in the record, or its swap may still take effect.
///
/// Others would respect it until the doubt has passed. So its service overwrites it when its flight has ended. If the mark's swap
/// hasn't taken effect yet, overwriting changes the record's revision, and the swap can no longer succeed. A later flight's mark
/// is another write, and stays.
struct StrayMark: Sendable, Hashable {
    /// Names the write that made the mark.
    let write: String
    /// The revision that it replaces.
    let base: SharedRecord.Revision?
    /// The record after the mark is taken back.
    var record: GrantRecord

    /// - Parameter before: The record without the mark.
    init(write: String, base: SharedRecord.Revision?, restoring before: GrantRecord) {
        self.write = write
        self.base = base
        record = before
        record.write = write + ".back"
    }

    /// Returns the swap that takes the mark back; `nil` if the mark is gone and can't appear any more.
    func remedy(for sighting: SharedFlight.Sighting?) -> SharedFlight.Step? {
        guard sighting?.record.write == write || sighting?.revision == base else { return nil }
        return .swap(record, ifAt: sighting?.revision)
    }
}

extension SharedSession {
    /// How often the service tries to take a mark back, with pauses that double from 1 s: for 127 s, when most doubts have
    /// passed.
    private static let attempts = 8

    /// Overwrites a mark that has become useless, whether or not the mark's own swap succeeds.
    func takeBack(_ stray: StrayMark) async {
        defer { forget(stray) }
        for attempt in 0..<Self.attempts {
            if attempt > 0 { await pause(for: .seconds(1 << (attempt - 1))) }
            if (try? await writeOver(stray)) != nil { return }
        }
    }

    private func writeOver(_ stray: StrayMark) async throws {
        var sighting = try await read()
        while case .swap(let record, let revision)? = stray.remedy(for: sighting),
            case .conflict(let other) = try await swap(record, ifAt: revision)
        {
            sighting = other
        }
    }
}
