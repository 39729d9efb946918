import Foundation

/// Where the package is.
let root = (0..<4).reduce(URL(filePath: #filePath)) { url, _ in url.deletingLastPathComponent() }

extension String {
    /// The lines that a terminal of 80 columns breaks.
    var tooLong: [Substring] { split(separator: "\n").filter { $0.count > 80 } }
}
