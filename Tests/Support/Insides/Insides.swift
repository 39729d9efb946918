public import AccessTokens
public import AccessTokensDispatch
public import AccessTokensEtcd
import AccessTokensKeys
import ChildProcesses
public import Foundation
public import Interleavings
import InterleavingsTesting
public import Testing
import TokenServiceConcurrency

// The package's internals that the tests of documents need. The tests themselves see only what a reader's program sees.

extension RefreshPolicy {
    /// When a refresh ahead starts, counted from the load's start: the earliest and the latest time that jitter allows.
    public func refreshStarts(lifetime: Duration) -> (first: Duration, last: Duration)? {
        guard
            let first = refreshStart(forLifetime: lifetime, refreshIn: nil, jitter: 0),
            let last = refreshStart(forLifetime: lifetime, refreshIn: nil, jitter: 1)
        else { return nil }
        return (first, last)
    }

    /// The time before its expiry during which a token is no longer handed out.
    public func leeway(lifetime: Duration) -> Duration { leeway(forLifetime: lifetime) }
    /// When a token is no longer handed out, counted from the load's start.
    public func hardExpiry(lifetime: Duration) -> Duration { hardExpiry(forLifetime: lifetime) }
    /// How long a token is handed out while loads fail.
    public func lastUse(lifetime: Duration) -> Duration { lastUse(forLifetime: lifetime) }
    /// The longest time before hard expiry at which a refresh ahead starts.
    public var longestRefreshWindow: Duration { maximumRefreshWindow }

    /// The pause after a number of failed loads for which callers waited.
    public static func pause(failures: Int, jitter: Double = 0) -> Duration { pause(afterFailures: failures, jitter: jitter) }
    /// The pause after a number of failed refreshes ahead.
    public static func refreshPause(failures: Int, jitter: Double = 0) -> Duration {
        refreshPause(afterFailures: failures, jitter: jitter)
    }
}

/// Stores in memory, one for each key.
public func storesInMemory() -> some TokenStores<String> { InMemoryTokenStores<String>() }

extension EtcdTokenStore {
    /// The key in etcd.
    public var keyInEtcd: String { key }
}

/// Random numbers that are the same in each run.
public struct SameNumbers: RandomNumberGenerator {
    private var generator = SplitMix64(seed: 1)
    /// Starts the sequence again.
    public init() {}
    /// The next number.
    public mutating func next() -> UInt64 { generator.next() }
}

extension AccessTokenService {
    /// The shim, with its handlers on a queue of the explorer.
    public convenience init(service: TokenService, on queue: VirtualQueue) {
        self.init(service: service) { queue.async($0) }
    }
}

extension ExplorationSummary {
    /// Whether only orders of calls to default actors were left out, which need `InterleavingsEverything`.
    public var omitsDefaultActorsOnly: Bool { coverage.gaps == [.defaultActor] }
}

/// Explores like a program that doesn't link `InterleavingsEverything`.
public struct Unlinked: TestTrait, SuiteTrait, TestScoping {
    /// Suites pass the trait on to their tests.
    public var isRecursive: Bool { true }

    /// Runs a test with the doors shut.
    @concurrent public func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @concurrent @Sendable () async throws -> Void
    ) async throws {
        try await UnaidedTrait.unaided.provideScope(for: test, testCase: testCase, performing: function)
    }
}

extension Trait where Self == Unlinked {
    /// Explores like a program that doesn't link `InterleavingsEverything`.
    public static var unlinked: Self { Unlinked() }
}

/// Runs a program, and returns its exit status and all that it writes; waits on a thread of its own.
public func run(_ program: URL, _ arguments: [String]) async throws -> (status: Int32, output: String) {
    // The shell brings both streams together.
    let process = try ChildProcess(
        URL(filePath: "/bin/bash"), ["-c", #"exec "$0" "$@" 2>&1"#, program.path] + arguments, connecting: .output)
    return await withCheckedContinuation { continuation in
        Thread.detachNewThread {
            let output = process[.output].readDataToEndOfFile()
            continuation.resume(returning: (process.waitUntilExit(), String(decoding: output, as: UTF8.self)))
        }
    }
}
