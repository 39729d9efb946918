import TokenServiceConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Where a ``TokenService`` keeps its token between two runs of the program.
///
/// The service calls one operation at a time, in the order it decided, in tasks that are never cancelled: a sign-out's
/// ``remove()`` is the last word, and a ``load()`` comes before it, since what is removed is to be revoked. A token is saved
/// *before* callers get it, so that a rotated refresh token survives a crash. Nothing waits for an operation longer than 5 s.
/// One that takes longer goes on; until it ends no other begins, and nothing else waits for the store. Three times
/// ``RefreshPolicy/loadTimeout`` later, 95 s after it began with the default limit, its callback is taken for lost, and the next one
/// begins beside it. A save or removal that ends after all may have come last: then the service repeats what it decided last.
public protocol TokenStore: Sendable {
    /// Returns what was saved last.
    ///
    /// Called at the first miss, and before a removal. It has 5 s, at the first miss no more than ``RefreshPolicy/loadTimeout``; then
    /// callers get an error with the code `storeFailed`.
    ///
    /// - Returns: `nil` only if nothing is there. A store that cannot say (locked, unreadable) throws: an error is tried
    ///   again later, while `nil` means that no user is signed in.
    @concurrent func load() async throws -> StoredToken?

    /// Keeps a token in place of the earlier one, altogether or not at all.
    ///
    /// - Parameter token: The token to keep.
    @concurrent func save(_ token: StoredToken) async throws

    /// Forgets the token; not an error if there is none.
    @concurrent func remove() async throws
}

/// A token and the moment from which its lifetime counts, on the wall clock: the only one that outlives a process.
public struct StoredToken: Sendable, Hashable {
    /// The token.
    public var token: AccessToken

    /// When its load began.
    public var received: Date

    /// Creates the pair.
    ///
    /// - Parameters:
    ///   - token: The token.
    ///   - received: When its load began.
    public init(_ token: AccessToken, received: Date) {
        self.token = token
        self.received = received
    }
}

/// A store that lasts as long as the program: for tests, and for services that share a session.
public final class InMemoryTokenStore: TokenStore {
    private let stored: Lock<StoredToken?>

    /// Creates a store.
    ///
    /// - Parameter token: What it holds at first.
    public init(_ token: StoredToken? = nil) {
        stored = Lock(token)
    }

    /// What the store holds at this moment.
    public var contents: StoredToken? { stored.withLock { $0 } }

    /// Returns what was saved last.
    @concurrent public func load() async -> StoredToken? { contents }

    /// Keeps a token in place of the earlier one.
    ///
    /// - Parameter token: The token to keep.
    @concurrent public func save(_ token: StoredToken) async { stored.withLock { $0 = token } }

    /// Forgets the token.
    @concurrent public func remove() async { stored.withLock { $0 = nil } }
}
