import Interleavings
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Writes the page of a failing test into a directory.
enum PageFile {
    /// Writes a page under a unique name, and returns the line of the report that gives its path, or the problem.
    ///
    /// Tests and processes may write into one directory at once: an existing file is never replaced.
    static func write(_ page: FailurePage, of test: Test, into directory: String) -> String {
        let name = "\(directory)/\(name(of: "\(test.id)"))"
        do {
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
            return "A page to walk through: \(try write(Data(page.html.utf8), as: name))"
        } catch {
            return "No page to walk through: INTERLEAVINGS_PAGE='\(directory)' cannot be written to: \(error)"
        }
    }

    /// Writes a new file, with a number where the name is taken, and returns its path.
    private static func write(_ contents: Data, as name: String) throws -> String {
        var (path, number) = ("\(name).html", 1)
        while true {
            do {
                try contents.write(to: URL(filePath: path), options: .withoutOverwriting)
                return path
            } catch let error as CocoaError where error.code == .fileWriteFileExists {
                number += 1
                path = "\(name)-\(number).html"
            }
        }
    }

    /// Returns a test's name without characters that are special to a file system or a shell.
    private static func name(of id: String) -> String {
        let parts = id.split(separator: "/").filter { !$0.contains(".swift:") }.map { part in
            part.split { !$0.isLetter && !$0.isNumber }.joined(separator: "-")
        }
        return String(parts.joined(separator: ".").prefix(80))
    }
}
