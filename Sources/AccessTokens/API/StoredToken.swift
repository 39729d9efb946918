import TokenServiceConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A token and the moment from which its lifetime counts, on the wall clock, the only clock that outlives a process.
public struct StoredToken: Sendable, Hashable {
    /// The token.
    public var token: AccessToken

    /// When the token's load began.
    public var received: Date

    /// Creates the pair.
    ///
    /// - Parameters:
    ///   - token: The token.
    ///   - received: When the token's load began.
    public init(_ token: AccessToken, received: Date) {
        self.token = token
        self.received = received
    }
}

extension StoredToken {
    /// Returns the token as bytes, for a store of your own: a keychain item, a row of a database.
    ///
    /// The format is versioned; the file store uses it, too. It isn't encrypted: keep the bytes as secret as the token.
    ///
    /// - Throws: ``StoredTokenFormatError`` if its date is not a number, or the bytes would exceed 1 MiB.
    public func serialized() throws -> Data {
        do { return Data(try StoredTokenFormat.encode(self)) } catch { throw StoredTokenFormatError(error) }
    }

    /// Reads a token from bytes that ``serialized()`` returned, in this version of the package or an earlier one.
    ///
    /// - Parameter data: All of the bytes; truncated ones are never accepted.
    /// - Throws: ``StoredTokenFormatError``, which quotes none of the bytes.
    public init(serialized data: Data) throws {
        do { self = try StoredTokenFormat.decode(Array(data)) } catch { throw StoredTokenFormatError(error) }
    }
}

/// Why bytes are not a stored token, or a token can't become bytes.
public struct StoredTokenFormatError: Error, Sendable, DescribedError {
    let problem: StoredTokenFormat.Problem

    init(_ problem: StoredTokenFormat.Problem) {
        self.problem = problem
    }

    /// The problem and its remedy, without any of the bytes.
    package var text: String {
        switch problem {
        case .foreign: "These bytes were not written by StoredToken.serialized(): check which item the store reads."
        case .damaged: "The bytes of the stored token are damaged or cut off: remove them and sign in again."
        case .unsupportedVersion(let version):
            "The stored token has format version \(version), which this version of the package can't read: update the package."
        case .notRepresentable: "The token's date is not a number: check the wall clock."
        case .tooLarge: "The token has more than 1 MiB, so it can't be stored: check what the authorization server issues."
        }
    }
}

/// The bytes of a stored token: one line of JSON whose first member names the format.
///
/// No proper prefix of it is valid JSON, so truncated bytes are never mistaken for a whole token.
package enum StoredTokenFormat {
    /// The first bytes of every stored token, in every version.
    package static let marker = Array(#"{"format":"tokenservice.token","#.utf8)

    package static let version = 1

    /// The size of the largest stored token that is written or read; far above what any server issues.
    package static let largest = 1 << 20

    /// Why bytes are not a stored token, or a token can't become bytes.
    package enum Problem: Error, Equatable {
        case foreign, damaged, unsupportedVersion(Int), notRepresentable, tooLarge
    }

    package static func encode(_ stored: StoredToken) throws(Problem) -> [UInt8] {
        Array(try json(Contents(stored)))
    }

    /// One line of JSON; the marker comes first because "format" sorts first among the keys.
    package static func json(_ contents: some Encodable) throws(Problem) -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(contents) else { throw .notRepresentable }
        guard data.count <= largest else { throw .tooLarge }
        return data
    }

    package static func decode(_ bytes: [UInt8]) throws(Problem) -> StoredToken {
        guard beginsLikeTokenFile(bytes) else { throw .foreign }
        let decoder = JSONDecoder()
        // The decoder's own errors quote the bytes, so they must not be passed on.
        guard let header = try? decoder.decode(Header.self, from: Data(bytes)) else { throw .damaged }
        guard header.version == version else { throw .unsupportedVersion(header.version) }
        guard let contents = try? decoder.decode(Contents.self, from: Data(bytes)) else { throw .damaged }
        return contents.stored
    }

    /// Whether the bytes begin like a stored token of some version, whole or truncated.
    package static func beginsLikeTokenFile(_ bytes: [UInt8]) -> Bool {
        bytes.prefix(marker.count).elementsEqual(marker.prefix(bytes.count))
    }

    private struct Header: Decodable {
        let version: Int
    }

    private struct Contents: Codable {
        let format: String
        /// Seconds since 2001-01-01T00:00:00Z, as `Date` counts them, so nothing is rounded.
        let received: Double
        let token: Token
        let version: Int

        init(_ stored: StoredToken) {
            format = "tokenservice.token"
            received = stored.received.timeIntervalSinceReferenceDate
            token = Token(stored.token)
            version = StoredTokenFormat.version
        }

        var stored: StoredToken {
            StoredToken(token.token, received: Date(timeIntervalSinceReferenceDate: received))
        }
    }

    package struct Token: Codable, Sendable {
        let value: String
        let tokenType: String
        let lifetime: Span?
        let refreshIn: Span?
        let scope: String?
        let refreshToken: String?
        /// Also in seconds since 2001.
        let refreshTokenExpiration: Double?
        let keyThumbprint: String?
        /// `nil` if there are none, as before there were any; earlier versions of this package skip them, and write them no more.
        let members: [String: String]?

        package init(_ token: AccessToken) {
            value = token.value
            tokenType = token.tokenType
            lifetime = token.lifetime.map(Span.init(wrappedValue:))
            refreshIn = token.refreshIn.map(Span.init(wrappedValue:))
            scope = token.scope
            refreshToken = token.refreshToken
            refreshTokenExpiration = token.refreshTokenExpiration?.timeIntervalSinceReferenceDate
            keyThumbprint = token.keyThumbprint
            members = token.members.isEmpty ? nil : token.members
        }

        package var token: AccessToken {
            AccessToken(
                value, tokenType: tokenType, lifetime: lifetime?.wrappedValue, refreshIn: refreshIn?.wrappedValue,
                scope: scope,
                refreshToken: refreshToken,
                refreshTokenExpiration: refreshTokenExpiration.map(Date.init(timeIntervalSinceReferenceDate:)),
                keyThumbprint: keyThumbprint, members: members ?? [:])
        }
    }

    /// A duration in whole numbers, exactly; one beyond 64 bits of seconds (292 billion years) is clamped.
    @propertyWrapper package struct Span: Codable, Sendable, Hashable {
        private let seconds: Int64
        private let attoseconds: Int64

        package init(wrappedValue duration: Duration) {
            let bounded = min(max(duration, .seconds(Int64.min)), .seconds(Int64.max))
            (seconds, attoseconds) = bounded.components
        }

        package var wrappedValue: Duration {
            get { Duration(secondsComponent: seconds, attosecondsComponent: attoseconds) }
            set { self = Span(wrappedValue: newValue) }
        }
    }
}
