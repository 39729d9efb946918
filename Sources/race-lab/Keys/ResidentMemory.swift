import Foundation

/// How much of the machine's memory the program holds at this moment.
enum ResidentMemory {
    /// In MiB, rounded; `nil` where there is no `/proc`.
    static var mebibytes: Int? {
        guard let text = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8),
            let line = text.split(separator: "\n").first(where: { $0.hasPrefix("VmRSS:") }),
            let kibibytes = line.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap({ Int($0) })
        else { return nil }
        return (kibibytes + 512) / 1024
    }
}
