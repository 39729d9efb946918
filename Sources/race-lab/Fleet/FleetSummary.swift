/// What a run of several processes found out.
struct FleetSummary: Encodable, CustomStringConvertible {
    let processes: Int
    let members: [FleetWatch.Member]
    let rotations: Int
    let kills: Int
    let losses: [FleetWatch.Loss]
    let sessionsLost: Int
    let unexplained: Int
    let seconds: Double
    /// How many rotations were wanted.
    let expiries: Int

    init(_ watch: FleetWatch, processes: Int, expiries: Int, elapsed: Duration) {
        self.processes = processes
        self.expiries = expiries
        members = watch.members
        rotations = watch.rotations
        kills = watch.members.count { $0.isKilled }
        losses = watch.losses
        sessionsLost = losses.count
        unexplained = losses.count { $0.reason == nil }
        seconds = Double(elapsed.nanoseconds / 1_000_000) / 1000
    }

    /// Why the run failed; `nil` if it succeeded.
    var error: String? {
        if unexplained > 0 { return "\(counted(unexplained, "session")) lost without a reason" }
        guard rotations < expiries else { return nil }
        return "the token was replaced \(counted(rotations, "time")) within \(seconds) s, not \(expiries): give more --seconds"
    }

    var description: String {
        let table = Table(
            headings: [["process"], ["loads"], ["adoptions"], ["at the end"]],
            rows: members.map {
                ["\($0.process)", "\($0.loads)", "\($0.adoptions)", $0.isKilled ? "killed" : "running"]
            })
        let total = """
            \(counted(rotations, "rotation")) by \(counted(processes, "process", plural: "processes")) in \(seconds) s, \(counted(kills, "kill")); \
            \(counted(sessionsLost, "session")) lost, \(unexplained) of them without a reason.
            """
        return (table.lines + ["", total.wrapped(indent: 0)]).joined(separator: "\n")
    }
}
