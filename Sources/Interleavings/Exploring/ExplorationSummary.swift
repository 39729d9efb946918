/// What an exploration did.
public struct ExplorationSummary: Sendable {
    /// How many schedules ran, those for checking and shrinking not counted.
    public internal(set) var schedules = 0
    /// How many of them failed: none or one, unless the exploration counts failures.
    public internal(set) var failures = 0
    /// The first failure, with its schedule shrunk.
    public internal(set) var firstFailure: ScheduleFailure?
    /// The steps of all schedules together.
    public internal(set) var steps = 0
    /// The most choices that a schedule had.
    public internal(set) var mostChoices = 0
    /// Whether there is no other schedule: only an exhaustive exploration that met no limit can tell.
    public internal(set) var isComplete = false
}
