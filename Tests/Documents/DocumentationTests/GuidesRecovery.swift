import AccessTokens
import Foundation
import Insides

/// The costs and savings of pauses between failed loads while a server is unreachable and callers keep asking.
enum Recovery {
    /// How a program continues after a failed load.
    enum Pacing: String, CaseIterable {
        case none = "load again at each call"
        case fixed = "a fixed pause of 1 s"
        case service = "TokenService"
        case signalled = "TokenService, and retryNow() once the server is back"

        func pause(afterFailures failures: Int, jitter: Double) -> Duration {
            switch self {
            case .none: calls
            case .fixed: .seconds(1)
            case .service, .signalled: RefreshPolicy.pause(failures: failures, jitter: jitter)
            }
        }
    }

    struct Cost {
        var loads = 0.0
        var wait = 0.0
        var longest = 0.0
    }

    /// The interval between calls; a load that fails does so at once.
    static let calls = Duration.milliseconds(20)
    /// How long the server is unreachable.
    static let outages: [Duration] = [.seconds(1), .seconds(10), .seconds(60), .seconds(600)]
    private static let runs = 1000

    /// Returns the mean number of loads in an outage, and the mean time from its end to the first successful load, over many
    /// outages whose lengths vary by up to a tenth.
    static func cost(of pacing: Pacing, outage: Duration) -> Cost {
        var random = SameNumbers()
        var cost = Cost()
        for _ in 0..<runs {
            let end = outage * (0.9 + 0.2 * Double.random(in: 0...1, using: &random))
            var now = Duration.zero, loads = 0
            while pacing != .none, now < end {
                loads += 1
                let pause = pacing.pause(afterFailures: loads, jitter: Double.random(in: 0...1, using: &random))
                now += max(pause, calls)
            }
            // The load begins with the first call that may begin one.
            let first = pacing == .none || pacing == .signalled ? end : now
            if pacing == .none { loads = Int((end / calls).rounded(.up)) }
            now = calls * (first / calls).rounded(.up)
            cost.loads += Double(loads)
            cost.wait += (now - end) / .seconds(1)
            cost.longest = max(cost.longest, (now - end) / .seconds(1))
        }
        return Cost(loads: cost.loads / Double(runs), wait: cost.wait / Double(runs), longest: cost.longest)
    }

    /// A row of the guide's table.
    static func row(_ pacing: Pacing) -> String {
        let cells = outages.map { outage in
            let cost = cost(of: pacing, outage: outage)
            return "\(told(cost.loads)) loads, \(told(cost.wait)) s"
        }
        return "| \(pacing.rawValue.replacing("retryNow()", with: "`retryNow()`")) | \(cells.joined(separator: " | ")) |"
    }

    /// Two digits are enough for a mean.
    private static func told(_ number: Double) -> String {
        if number >= 1000 { return "\(Int((number / 1000).rounded())),000" }
        if number >= 10 { return "\(Int(number.rounded()))" }
        let digits = number >= 1 ? 10.0 : 100
        let rounded = (number * digits).rounded() / digits
        return rounded == rounded.rounded() ? "\(Int(rounded))" : "\(rounded)"
    }

    // MARK: The picture

    static func draw(_ appearance: GuidesDrawing.Appearance) -> String {
        var drawing = GuidesDrawing("Loads during an outage against waiting after it", height: 344, appearance: appearance)
        let left = 62.0, right = 440.0, top = 34.0, bottom = 276.0
        // Both axes are logarithmic.
        func across(_ wait: Double) -> Double { left + (log10(max(wait, 0.01)) + 2) / 4 * (right - left) }
        func up(_ loads: Double) -> Double { bottom - log10(loads) / 5 * (bottom - top) }
        drawing.text(.text, "Loads while the server is away", x: 12, y: 18, isBold: true)
        for power in 0...5 {
            let loads = pow(10, Double(power))
            drawing.box(.grid, from: left, to: right, y: up(loads), height: 1)
            drawing.text(.note, ["1", "10", "100", "1,000", "10,000", ""][power], x: left - 6, y: up(loads) + 4, .end)
        }
        for (wait, label) in [(0.01, "0.01 s"), (0.1, "0.1 s"), (1, "1 s"), (10, "10 s"), (100, "100 s")] {
            drawing.tick(.line, x: across(wait), from: bottom, to: bottom + 6)
            drawing.text(.note, label, x: across(wait), y: bottom + 22, .middle)
        }
        for (pacing, ink) in zip([Pacing.none, .fixed, .service], [GuidesDrawing.Ink.attempt, .line, .text]) {
            for outage in outages {
                let cost = cost(of: pacing, outage: outage)
                drawing.dot(ink, x: across(cost.wait), y: up(cost.loads))
                let (x, y) = (across(cost.wait), up(cost.loads))
                // The dots of the first two are stacked; those of the last one are side by side.
                if pacing == .service {
                    drawing.text(.note, outage.asTold, x: x, y: y - 10, outage == outages[1] ? .end : .middle)
                } else {
                    drawing.text(.note, outage.asTold, x: x + 8, y: y + 4)
                }
            }
        }
        drawing.text(.text, "Mean wait after it", x: right, y: bottom + 22 + 20, .end, isBold: true)
        let legend: [(GuidesDrawing.Ink, String)] = [
            (.attempt, Pacing.none.rawValue), (.line, Pacing.fixed.rawValue), (.text, Pacing.service.rawValue),
        ]
        var x = 16.0
        for (ink, name) in legend {
            drawing.dot(ink, x: x, y: 331)
            drawing.text(.text, name, x: x + 10, y: 335)
            x += 34 + Double(name.count) * 6.6
        }
        return drawing.svg
    }
}
