import AccessTokens
import Foundation

/// The bytes of a token file: one line of JSON whose first member says what it is.
///
/// Every proper beginning of it is no JSON, so a file that was cut off never passes for a whole one.
enum TokenFileFormat {
    /// What every token file of every version begins with, byte for byte.
    static let marker = Array(#"{"format":"tokenservice.token","#.utf8)

    static let version = 1

    /// No token file is larger, and nothing larger is read; far above what any server issues.
    static let largest = 1 << 20

    /// Why bytes are no token file, or a token cannot become one.
    enum Problem: Error, Equatable {
        case foreign, damaged, unsupportedVersion(Int), notRepresentable, tooLarge
    }

    static func encode(_ stored: StoredToken) throws(Problem) -> [UInt8] {
        let encoder = JSONEncoder()
        // The marker comes first because "format" is the first key of the alphabet.
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(Contents(stored)) else { throw .notRepresentable }
        guard data.count <= largest else { throw .tooLarge }
        return Array(data)
    }

    static func decode(_ bytes: [UInt8]) throws(Problem) -> StoredToken {
        guard beginsLikeTokenFile(bytes) else { throw .foreign }
        let decoder = JSONDecoder()
        // The decoder's own errors quote what they find, so that nothing of them may go further.
        guard let header = try? decoder.decode(Header.self, from: Data(bytes)) else { throw .damaged }
        guard header.version == version else { throw .unsupportedVersion(header.version) }
        guard let contents = try? decoder.decode(Contents.self, from: Data(bytes)) else { throw .damaged }
        return contents.stored
    }

    /// Whether the bytes are, or were before they were cut off, those of a token file of some version.
    static func beginsLikeTokenFile(_ bytes: [UInt8]) -> Bool {
        bytes.prefix(marker.count).elementsEqual(marker.prefix(bytes.count))
    }

    private struct Header: Decodable {
        let version: Int
    }

    private struct Contents: Codable {
        let format: String
        /// Seconds since 2001-01-01T00:00:00Z, which is how `Date` counts: nothing is rounded.
        let received: Double
        let token: Token
        let version: Int

        init(_ stored: StoredToken) {
            format = "tokenservice.token"
            received = stored.received.timeIntervalSinceReferenceDate
            token = Token(stored.token)
            version = TokenFileFormat.version
        }

        var stored: StoredToken {
            StoredToken(token.token, received: Date(timeIntervalSinceReferenceDate: received))
        }
    }

    private struct Token: Codable {
        let value: String
        let tokenType: String
        let lifetime: Span?
        let refreshIn: Span?
        let scope: String?
        let refreshToken: String?

        init(_ token: AccessToken) {
            value = token.value
            tokenType = token.tokenType
            lifetime = token.lifetime.map(Span.init)
            refreshIn = token.refreshIn.map(Span.init)
            scope = token.scope
            refreshToken = token.refreshToken
        }

        var token: AccessToken {
            AccessToken(
                value, tokenType: tokenType, lifetime: lifetime?.duration, refreshIn: refreshIn?.duration, scope: scope,
                refreshToken: refreshToken)
        }
    }

    /// A duration in whole numbers, exactly; one that 64 bits of seconds cannot count (292 billion years) is cut to them.
    private struct Span: Codable {
        let seconds: Int64
        let attoseconds: Int64

        init(_ duration: Duration) {
            let bounded = min(max(duration, .seconds(Int64.min)), .seconds(Int64.max))
            (seconds, attoseconds) = bounded.components
        }

        var duration: Duration { Duration(secondsComponent: seconds, attosecondsComponent: attoseconds) }
    }
}
