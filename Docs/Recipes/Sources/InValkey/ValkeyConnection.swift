import CHiredis
import Foundation

/// A connection to Valkey or Redis through hiredis, opened at the first
/// use and again after it was lost.
actor ValkeyConnection {
    private nonisolated let executor = BlockingExecutor()
    nonisolated var unownedExecutor: UnownedSerialExecutor {
        unsafe executor.asUnownedSerialExecutor()
    }

    private let host: String
    private let port: Int32
    private let user: (name: String, password: String)?
    private var session: ValkeySession?

    init(
        host: String, port: Int32 = 6379,
        user: (name: String, password: String)? = nil
    ) {
        (self.host, self.port, self.user) = (host, port, user)
        // Otherwise a write to a lost connection ends the process.
        _ = signal(SIGPIPE, SIG_IGN)
    }

    /// Runs a script that has one key.
    ///
    /// It is sent only once. If this throws, the server may have run it,
    /// or may still do so.
    func eval(
        _ script: String, key: String, _ arguments: [Data]
    ) throws -> [Data] {
        let session = try liveSession()
        self.session = nil
        let words = ["EVAL", script, "1", key].map { Data($0.utf8) }
        let answer = try session.call(words + arguments)
        self.session = session
        return answer
    }

    private func liveSession() throws -> ValkeySession {
        if let session, session.isAlive { return session }
        let session = try ValkeySession(host, port, within: 2)
        if let user {
            let words = ["AUTH", user.name, user.password]
            _ = try session.call(words.map { Data($0.utf8) })
        }
        return session
    }
}

/// Shows what hiredis or the server says, without a command's arguments.
struct ValkeyError: Error, CustomStringConvertible {
    let description: String

    init(_ text: String) {
        // A server repeats the arguments of an unknown command.
        let end =
            text.range(of: ", with args")?.lowerBound ?? text.endIndex
        description = String(text[..<end])
    }
}

/// A connection until it is lost; used by one thread at a time.
@safe private final class ValkeySession {
    private let context: UnsafeMutablePointer<redisContext>

    init(_ host: String, _ port: Int32, within seconds: Int) throws {
        let limit = timeval(tv_sec: seconds, tv_usec: 0)
        let context = unsafe redisConnectWithTimeout(host, port, limit)
        guard let context = unsafe context else {
            throw ValkeyError("no memory")
        }
        unsafe self.context = context
        guard unsafe context.pointee.err == 0 else { throw error }
        unsafe redisSetTimeout(context, limit)
    }

    deinit { unsafe redisFree(context) }

    var isAlive: Bool { unsafe !isReady(context.pointee.fd) }

    private var error: ValkeyError {
        let text = unsafe withUnsafeBytes(of: context.pointee.errstr) {
            unsafe String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
        }
        return ValkeyError(text)
    }

    /// Sends one command, and returns its answer's strings.
    func call(_ words: [Data]) throws -> [Data] {
        let answer = unsafe withPointers(to: words) { pointers in
            var pointers = unsafe pointers
            return unsafe redisCommandArgv(
                context, Int32(words.count), &pointers, words.map(\.count)
            )
        }
        guard let answer = unsafe answer else { throw error }
        defer { unsafe freeReplyObject(answer) }
        let reply = unsafe answer.assumingMemoryBound(to: redisReply.self)
        guard unsafe reply.pointee.type != REDIS_REPLY_ERROR else {
            let text = unsafe Self.bytes(of: reply)
            throw ValkeyError(String(decoding: text, as: UTF8.self))
        }
        return unsafe (0..<reply.pointee.elements).map {
            unsafe Self.bytes(of: reply.pointee.element[$0])
        }
    }

    private static func bytes(
        of reply: UnsafeMutablePointer<redisReply>?
    ) -> Data {
        guard let reply = unsafe reply,
            let text = unsafe reply.pointee.str
        else { return Data() }
        return unsafe Data(bytes: text, count: reply.pointee.len)
    }
}
