import Foundation

/// Where the figures come from.
struct Machine: Codable, Sendable, CustomStringConvertible {
    let system: String
    let processor: String
    let cores: Int
    let compiler: String
    let date: Date

    static func here(at date: Date) -> Machine {
        let information = ProcessInfo.processInfo
        return Machine(
            system: information.operatingSystemVersionString, processor: processor,
            cores: information.activeProcessorCount, compiler: compiler, date: date)
    }

    var description: String {
        let day = date.formatted(.iso8601.year().month().day())
        return "\(processor), \(cores) cores; \(system); Swift \(compiler); \(day)"
    }

    /// As Linux tells it; elsewhere the architecture.
    private static var processor: String {
        let lines = (try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8))?.split(separator: "\n") ?? []
        let name = lines.first { $0.hasPrefix("model name") }?.split(separator: ":").last
        if let name { return name.trimmingCharacters(in: .whitespaces) }
        #if arch(arm64)
        return "arm64"
        #else
        return "x86_64"
        #endif
    }

    private static var compiler: String {
        #if compiler(>=6.4)
        "6.4 or newer"
        #elseif compiler(>=6.3.2)
        "6.3.2 or newer"
        #elseif compiler(>=6.3.1)
        "6.3.1"
        #elseif compiler(>=6.3)
        "6.3.0"
        #else
        "6.2"
        #endif
    }
}
