import Foundation
import Testing

/// A program, which the build puts beside the tests.
func program(_ name: String) throws -> URL {
    let tests = Bundle.allBundles.first { $0.bundlePath.hasSuffix(".xctest") }?.bundleURL
    let place = (tests ?? URL(fileURLWithPath: CommandLine.arguments[0])).deletingLastPathComponent()
    let program = place.appending(path: name)
    try #require(FileManager.default.isExecutableFile(atPath: program.path), "\(program.path) is not built")
    return program
}

/// Waits for another process; a test that waits in vain ends with its time limit.
func until(_ isDone: () throws -> Bool) async throws {
    while try !isDone() { try await Task.sleep(for: .milliseconds(5)) }
}
