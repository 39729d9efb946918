import AccessTokens
import Insides

/// The pictures of the guide to `RefreshPolicy`, drawn from its formulas.
enum RefreshPolicyPictures {
    typealias Drawing = GuidesDrawing

    private static let policy = RefreshPolicy()
    private static let left = 12.0
    private static let right = 508.0

    /// The pictures' names in `Sources/AccessTokens/AccessTokens.docc`, and functions that draw them.
    static let all: [(name: String, draw: @Sendable (Drawing.Appearance) -> String)] = [
        ("token-life", tokenLife), ("failure-pauses", failurePauses),
        ("recovery", Recovery.draw),
    ]

    static func tokenLife(_ appearance: Drawing.Appearance) -> String {
        var drawing = Drawing("The life of a token", height: 296, appearance: appearance)
        addLife(.seconds(300), to: &drawing, y: 14)
        addLife(.seconds(3600), to: &drawing, y: 106)
        let meanings: [(Drawing.Ink, String)] = [
            (.fresh, "fresh: callers get the token at once"),
            (.either, "jitter: the refresh window opens somewhere in here"),
            (.refresh, "refresh window: callers get the token at once, one load runs"),
            (.leeway, "leeway: callers wait for the next token"),
        ]
        for (line, (ink, meaning)) in meanings.enumerated() {
            let y = 200 + Double(line) * 24
            drawing.box(ink, from: left, to: left + 26, y: y, height: 16)
            drawing.text(.text, meaning, x: left + 36, y: y + 13)
        }
        return drawing.svg
    }

    /// Adds a line with one token's life, scaled to the same length.
    private static func addLife(_ lifetime: Duration, to drawing: inout Drawing, y: Double) {
        let scale = (right - left) / (lifetime / .seconds(1))
        func place(_ moment: Duration) -> Double { left + (moment / .seconds(1)) * scale }
        let (opens, opensAtLatest) = policy.refreshStarts(lifetime: lifetime) ?? (lifetime, lifetime)
        let expiry = policy.hardExpiry(lifetime: lifetime)

        drawing.text(.text, "A token of \(lifetime.asTold)", x: left, y: y + 4, isBold: true)
        let top = y + 14
        let parts: [(Drawing.Ink, Duration, Duration)] = [
            (.fresh, .zero, opens), (.either, opens, opensAtLatest), (.refresh, opensAtLatest, expiry),
            (.leeway, expiry, lifetime),
        ]
        for (ink, start, end) in parts { drawing.box(ink, from: place(start), to: place(end), y: top) }
        drawing.text(.text, "fresh", x: (place(.zero) + place(opens)) / 2, y: top + 20, .middle)
        drawing.text(.text, "refresh window", x: (place(opensAtLatest) + place(expiry)) / 2, y: top + 20, .middle)
        for moment in [.zero, opens, opensAtLatest, lifetime] {
            drawing.tick(.line, x: place(moment), from: top + 30, to: top + 36)
        }
        drawing.tick(.line, x: place(expiry), from: top - 6, to: top)
        drawing.text(.note, "hard expiry \(expiry.asTold)", x: place(expiry), y: y + 4, .end)
        let under = top + 50
        drawing.text(.note, "load begins", x: place(.zero), y: under)
        drawing.text(.note, opens.asTold, x: place(opens) + 2, y: under, .end)
        drawing.text(.note, opensAtLatest.asTold, x: place(opensAtLatest), y: under)
        drawing.text(.note, lifetime.asTold, x: place(lifetime), y: under, .end)
    }

    static func failurePauses(_ appearance: Drawing.Appearance) -> String {
        var drawing = Drawing("When a failing server is asked again", height: 176, appearance: appearance)
        let loads = attempts(before: .seconds(300)) { RefreshPolicy.pause(failures: $0) }
        addAttempts(loads, within: .seconds(300), "No token: loads that callers wait for", to: &drawing, y: 14)
        let window = policy.longestRefreshWindow
        let title = "A good token of 1 h: refreshes ahead, in its window"
        addAttempts(refreshes(in: window), within: window, title, to: &drawing, y: 104)
        return drawing.svg
    }

    private static func addAttempts(
        _ moments: [Duration], within span: Duration, _ title: String, to drawing: inout Drawing, y: Double
    ) {
        let scale = (right - left) / (span / .seconds(1))
        func place(_ moment: Duration) -> Double { left + (moment / .seconds(1)) * scale }
        drawing.text(.text, title, x: left, y: y + 4, isBold: true)
        let top = y + 14
        drawing.box(.line, from: left, to: right, y: top + 29, height: 1)
        for moment in moments { drawing.tick(.attempt, x: place(moment), from: top, to: top + 30, width: 2) }
        for (moment, next) in zip(moments, moments.dropFirst()) where place(next) - place(moment) > 36 {
            drawing.text(.note, (next - moment).asTold, x: (place(moment) + place(next)) / 2, y: top + 20, .middle)
        }
        drawing.text(.note, "0", x: left, y: top + 46)
        drawing.text(.note, span.asTold, x: right, y: top + 46, .end)
    }

    /// Returns the times at which a server that always fails at once is asked.
    static func attempts(before end: Duration, pause: (_ failures: Int) -> Duration) -> [Duration] {
        var moments = [Duration.zero]
        while let last = moments.last, last + pause(moments.count) < end { moments.append(last + pause(moments.count)) }
        return moments
    }

    static func refreshes(in window: Duration) -> [Duration] {
        attempts(before: window) { RefreshPolicy.refreshPause(failures: $0) }
    }
}

extension Duration {
    /// The duration in a natural unit: seconds below 5 min, minutes below an hour, then hours.
    var asTold: String {
        let milliseconds = Int((self / .milliseconds(1)).rounded())
        if milliseconds < 300_000 { return "\(Self.decimal(milliseconds, of: 1000)) s" }
        if milliseconds < 3_600_000 { return "\(Self.decimal(milliseconds, of: 60_000)) min" }
        let hours = milliseconds / 3_600_000, rest = milliseconds % 3_600_000
        return rest == 0 ? "\(hours) h" : "\(hours) h \(Self.decimal(rest, of: 60_000)) min"
    }

    /// Returns two durations as a range, which names a common unit once; `none` if it is empty.
    func asTold(to end: Duration) -> String {
        if end == .zero { return "none" }
        let start = asTold.split(separator: " "), end = end.asTold.split(separator: " ")
        guard start.count == end.count, start.last == end.last else { return (start + ["…"] + end).joined(separator: " ") }
        let different = zip(start, end).prefix { $0 == $1 }.count
        return (start.dropLast() + ["…"] + end.dropFirst(different)).joined(separator: " ")
    }

    private static func decimal(_ number: Int, of unit: Int) -> String {
        number.isMultiple(of: unit) ? "\(number / unit)" : "\(Double(number) / Double(unit))"
    }
}
