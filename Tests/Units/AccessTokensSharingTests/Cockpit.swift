@testable import AccessTokens
@testable import AccessTokensSharing

/// One flight, with everything around it controlled by the test.
struct Cockpit {
    var flight: SharedFlight
    var moment = SharedFlight.Moment(now: .zero, wall: 1_000)

    init(_ change: (inout SharedFlight.Setting) -> Void = { _ in }, knowing knowledge: SharedFlight.Knowledge = .init()) {
        var setting = SharedFlight.Setting(owner: "me")
        change(&setting)
        flight = SharedFlight(setting, knowing: knowledge)
    }

    mutating func take(_ event: SharedFlight.Event, isAbandoned: Bool = false) -> SharedFlight.Step {
        moment.isAbandoned = isAbandoned
        return flight.next(event, at: moment)
    }

    /// Runs until the refresh token is being presented, and returns the marked record.
    mutating func present(_ record: GrantRecord) throws -> GrantRecord {
        guard case .swap(let marked, ifAt: .init("1")) = take(.read(seen(record))) else { throw Unexpected() }
        guard case .load(record.token) = take(.swapped(.init("2"))) else { throw Unexpected() }
        return marked
    }

    struct Unexpected: Error {}
}

func seen(_ record: GrantRecord, at revision: String = "1", running: Bool? = nil) -> SharedFlight.Sighting {
    .init(record: record, revision: .init(revision), isHolderRunning: running)
}

func record(_ generation: UInt64, _ token: AccessToken? = .granted("old"), age: Double = 0, mark: String? = nil)
    -> GrantRecord
{
    var record = GrantRecord(write: "w\(generation)", generation: generation, token: token, received: 1_000 - age)
    record.mark = mark.map { .init(owner: $0, holder: nil, limit: .seconds(60)) }
    return record
}

let expired = record(3, .granted("old"), age: 4_000)
let refused = FlightFailure(error: TokenServiceError(.loadFailed, remedy: .signIn), isDefinite: true)
let unclear = FlightFailure(error: TokenServiceError(.loadFailed), isDefinite: false)
let storeDown = FlightFailure.store(StoreTimeout())

extension SharedFlight.Step {
    var outcome: FlightOutcome? { if case .end(let ending) = self { ending.outcome } else { nil } }
    var discarded: AccessToken? { if case .end(let ending) = self { ending.discarded } else { nil } }
    var written: GrantRecord? { if case .swap(let record, _) = self { record } else { nil } }
}
