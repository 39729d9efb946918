import CPostgreSQL
import Foundation

/// A connection to PostgreSQL through libpq, opened at the first use and
/// again after it was lost.
actor PostgreSQLConnection {
    private nonisolated let executor = BlockingExecutor()
    nonisolated var unownedExecutor: UnownedSerialExecutor {
        unsafe executor.asUnownedSerialExecutor()
    }

    private let settings: String
    private var session: PostgreSQLSession?

    /// - Parameter settings: libpq's, such as `host`, `dbname`, `user`
    ///   and `password`. libpq takes the others from the environment.
    init(_ settings: [String: String]) {
        // A replica's records are old.
        let all = [
            "connect_timeout": "2", "target_session_attrs": "read-write",
        ]
        .merging(settings) { $1 }
        self.settings = all.map { name, value in
            let value = value.replacing("\\", with: "\\\\")
            return "\(name)='\(value.replacing("'", with: "\\'"))'"
        }.joined(separator: " ")
    }

    /// Runs a statement in a transaction of its own, and returns its
    /// first row.
    ///
    /// It is sent only once. If this throws, the server may have run it,
    /// or may still do so.
    func row(_ statement: String, _ values: [Data]) throws -> [Data]? {
        let session =
            if let session, session.isAlive { session } else {
                try PostgreSQLSession(settings)
            }
        self.session = nil
        let row = try session.row(statement, values, within: .seconds(2))
        self.session = session
        return row
    }
}

/// Shows what libpq or the server says, never a value or a password.
struct PostgreSQLError: Error, CustomStringConvertible {
    /// The SQLSTATE; `nil`: the server didn't answer.
    var code: String?
    var description: String
}

/// A connection until it is lost; used by one thread at a time.
@safe private final class PostgreSQLSession {
    private let connection: OpaquePointer?

    init(_ settings: String) throws {
        unsafe connection = PQconnectdb(settings)
        guard unsafe PQstatus(connection) == CONNECTION_OK else {
            throw error
        }
        guard unsafe PQserverVersion(connection) >= 90_500 else {
            throw PostgreSQLError(
                description: "PostgreSQL 9.5 or newer is needed.")
        }
        unsafe PQsetnonblocking(connection, 1)
        unsafe PQsetNoticeProcessor(connection, { _, _ in }, nil)
    }

    deinit { unsafe PQfinish(connection) }

    var isAlive: Bool { unsafe !isReady(PQsocket(connection)) }

    private var error: PostgreSQLError {
        let text = unsafe String(cString: PQerrorMessage(connection))
        return PostgreSQLError(
            description: text.trimmingCharacters(
                in: .whitespacesAndNewlines))
    }

    /// Leaves out the server's details, which may quote a value.
    private func error(in result: OpaquePointer) -> PostgreSQLError {
        func field(_ name: Unicode.Scalar) -> String? {
            let text = unsafe PQresultErrorField(
                result, Int32(name.value))
            return unsafe text.map { unsafe String(cString: $0) }
        }
        guard let text = field("M") else { return error }
        return PostgreSQLError(code: field("C"), description: text)
    }

    func row(
        _ statement: String, _ values: [Data], within limit: Duration
    ) throws -> [Data]? {
        let end = ContinuousClock.now + limit
        let lengths = values.map { Int32($0.count) }
        let binary = values.map { _ in Int32(1) }
        let isQueued = unsafe withPointers(to: values) { pointers in
            unsafe PQsendQueryParams(
                connection, statement, Int32(values.count), nil, pointers,
                lengths, binary, 1)
        }
        guard isQueued == 1 else { throw error }
        var row: [Data]?
        // More than one: an error of the commit comes after the row.
        while let result = try unsafe nextResult(until: end) {
            defer { unsafe PQclear(result) }
            guard unsafe PQresultStatus(result) != PGRES_FATAL_ERROR
            else {
                throw unsafe error(in: result)
            }
            guard unsafe PQntuples(result) > 0 else { continue }
            row = (0..<(unsafe PQnfields(result))).map { column in
                guard let value = unsafe PQgetvalue(result, 0, column)
                else {
                    return Data()
                }
                let count = unsafe Int(PQgetlength(result, 0, column))
                return unsafe Data(bytes: value, count: count)
            }
        }
        return row
    }

    /// Waits for the next result of a statement; `nil` after the last.
    private func nextResult(
        until end: ContinuousClock.Instant
    ) throws -> OpaquePointer? {
        while true {
            let isSending = unsafe PQflush(connection) == 1
            guard isSending || (unsafe PQisBusy(connection)) == 1 else {
                return unsafe PQgetResult(connection)
            }
            let events = isSending ? POLLIN | POLLOUT : POLLIN
            guard
                isReady(
                    unsafe PQsocket(connection), events,
                    within: end - ContinuousClock.now)
            else {
                throw PostgreSQLError(description: "no answer in time")
            }
            guard unsafe PQconsumeInput(connection) == 1 else {
                throw error
            }
        }
    }
}
