package import Foundation
import TokenServiceConcurrency

/// A program that runs in parallel with the tests.
///
/// Foundation's `Process` reads past the end of a list of open files when it starts one
/// ([swift-corelibs-foundation#5472](https://github.com/swiftlang/swift-corelibs-foundation/pull/5472)): with Swift 6.3.1, beside hundreds
/// of other tests, the process that runs them crashed there.
package final class ChildProcess: Sendable {
    /// The streams that are connected to the tests; the other ones are inherited.
    package struct Stream: Sendable {
        fileprivate let number: Int32

        package static let input = Stream(number: 0), output = Stream(number: 1), error = Stream(number: 2)
    }

    package let processIdentifier: pid_t
    private let ends: [Int32: FileHandle]
    /// Its exit status; `nil` while it runs.
    private let status = Lock<Int32?>(nil)
    private let exit = DispatchGroup()

    /// One program starts at a time, so that no other inherits its pipes.
    private static let beginning = Lock<Void>(())

    /// A program of this package, which the build puts beside the tests.
    package static func program(_ name: String) -> URL {
        #if canImport(Darwin)
        let tests = Bundle.allBundles.first { $0.bundlePath.hasSuffix(".xctest") }?.bundleURL
        #else
        // The tests are a program. With Swift 6.2, `allBundles` ends it.
        let tests: URL? = nil
        #endif
        return (tests ?? URL(filePath: CommandLine.arguments[0])).deletingLastPathComponent().appending(path: name)
    }

    /// Starts a program.
    package init(_ program: URL, _ arguments: [String], connecting streams: Stream...) throws {
        (processIdentifier, ends) = try Self.beginning.withLock { _ in try Self.start(program, arguments, streams.map(\.number)) }
        awaitEnd()
    }

    /// The test's end of a stream of the program.
    package subscript(_ stream: Stream) -> FileHandle { ends[stream.number] ?? .nullDevice }

    private static func start(_ program: URL, _ arguments: [String], _ streams: [Int32]) throws -> (pid_t, [Int32: FileHandle]) {
        #if canImport(Darwin)
        var actions: posix_spawn_file_actions_t?
        #else
        var actions = unsafe posix_spawn_file_actions_t()
        #endif
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        var ours: [Int32: FileHandle] = [:], theirs: [FileHandle] = []
        for number in streams {
            let pipe = Pipe()
            let (our, their) = (
                number == 0 ? pipe.fileHandleForWriting : pipe.fileHandleForReading,
                number == 0 ? pipe.fileHandleForReading : pipe.fileHandleForWriting
            )
            for end in [our, their] { _ = fcntl(end.fileDescriptor, F_SETFD, FD_CLOEXEC) }
            unsafe posix_spawn_file_actions_adddup2(&actions, their.fileDescriptor, number)
            ours[number] = our
            theirs.append(their)
        }
        // Closed so that a reader notices the program's end.
        defer { for end in theirs { try? end.close() } }
        let words = unsafe ([program.path] + arguments).map { unsafe strdup($0) }
        defer { unsafe words.forEach { unsafe free($0) } }
        var pid = pid_t()
        let problem = unsafe posix_spawn(&pid, program.path, &actions, nil, words + [nil], environ)
        guard problem == 0 else { throw POSIXError(POSIXErrorCode(rawValue: problem) ?? .ENOENT) }
        return (pid, ours)
    }

    /// Collects the program's exit at once: until then, the testing library's own wait for processes would spin.
    private func awaitEnd() {
        exit.enter()
        Thread.detachNewThread { [self] in
            var text: Int32 = 0
            // The process number may be reused once its exit has been collected.
            while waitid(P_PID, id_t(processIdentifier), nil, WEXITED | WNOWAIT) < 0, errno == EINTR {}
            status.withLock { status in
                unsafe waitpid(processIdentifier, &text, 0)
                let signal = text & 0x7f
                status = signal == 0 ? (text >> 8) & 0xff : 128 + signal
            }
            exit.leave()
        }
    }

    /// Kills the program if it is running, and waits for its end.
    package func end() {
        status.withLock { if $0 == nil { _ = kill(processIdentifier, SIGKILL) } }
        waitUntilExit()
    }

    /// Blocks the thread until the program has ended.
    ///
    /// - Returns: Its exit status; 128 plus the signal's number if a signal ended it.
    @discardableResult
    package func waitUntilExit() -> Int32 {
        exit.wait()
        return status.withLock { $0 ?? 0 }
    }
}
