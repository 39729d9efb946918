import TokenServiceConcurrency

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// The members of an authorization server's answer, by name.
///
/// A server may write a secret anywhere: no description, dump or mirror shows a member.
///
/// Source: RFC 6749 §5.1; RFC 8259.
public struct AnswerMembers: Sendable {
    /// The same limit as for a transport's body.
    package static let maximumSize = 1 << 20

    private let body: Data
    private let members: [(name: String, value: JSONScanner.Value)]
    /// Why the body can't be used, without quoting it; `nil` if it can.
    package let problem: String?
    /// What kind of body it is, for a refusal.
    let kind: Refusal.Body

    package init(_ body: Data) {
        self.body = body
        guard !body.isEmpty, body.count <= Self.maximumSize else {
            (members, problem, kind) = ([], body.isEmpty ? "it is empty" : "it is too long", body.isEmpty ? .empty : .foreign)
            return
        }
        var scanner = JSONScanner(body)
        let object = scanner.object()
        members = object.members
        let isUTF8 = String(validating: body, as: UTF8.self) != nil && !body.contains(0)
        problem = isUTF8 ? object.problem ?? Self.repeated(object.members) : "it is not UTF-8"
        kind = isUTF8 && object.problem == nil ? .object : .foreign
    }

    /// The text of a member, such as `id_token` or `issued_token_type`; `nil` if it is missing, empty, repeated or not a string.
    ///
    /// A list of scopes (`scope`) is read as one text with spaces.
    public subscript(name: String) -> String? {
        guard case .string(let text)? = value(name), !text.isEmpty else { return nil }
        return text
    }

    /// Decodes the whole answer.
    ///
    /// - Throws: ``OAuthError`` with the code `unreadableResponse`, which quotes nothing of the answer.
    public func decoded<Answer: Decodable>(as type: Answer.Type) throws -> Answer {
        do {
            return try JSONDecoder().decode(type, from: body)
        } catch {
            throw OAuthError(.unreadableResponse("its members don't fit \(type)"))
        }
    }

    /// Returns the value of a member that isn't repeated; `nil` if there is none, or it is `null`.
    ///
    /// The scopes may be a list, as Twitch writes them.
    package func value(_ name: String) -> JSONScanner.Value? {
        let values = members.filter { $0.name == name }.map(\.value)
        guard values.count == 1, values[0] != .null else { return nil }
        if name == "scope", case .texts(let scopes) = values[0] { return .string(scopes.joined(separator: " ")) }
        return values[0]
    }

    /// The refresh tokens, even of a body that can't be used otherwise; several if the name repeats.
    var refreshTokens: [String] { texts(of: ["refresh_token"]) }

    /// How long the refresh token is valid; zero: without a limit, as with Keycloak's offline access.
    ///
    /// A non-standard member with two names. An invalid or repeated value is ignored, and so is any value of a damaged answer, so
    /// that no token is lost or expires too soon.
    var refreshTokenLifetime: Duration? {
        guard problem == nil else { return nil }
        return seconds("refresh_token_expires_in") ?? seconds("refresh_expires_in")
    }

    /// The time in a member; `nil` if it has none.
    func seconds(_ name: String) -> Duration? { value(name)?.seconds }

    /// The issued secrets, which no text may show.
    var secrets: [String] {
        texts(of: ["access_token", "refresh_token", "id_token", "device_code", "user_code", "code", "request_uri"])
    }

    private func texts(of names: Set<String>) -> [String] {
        members.filter { names.contains($0.name) }.compactMap { if case .string(let text) = $0.value { text } else { nil } }
    }

    /// Reports a repeated member that we read, by name; shows nothing else of the body.
    private static func repeated(_ members: [(name: String, value: JSONScanner.Value)]) -> String? {
        let read: Set<String> = [
            "access_token", "token_type", "expires_in", "refresh_in", "refresh_token", "scope", "error", "error_description",
        ]
        var seen: Set<String> = []
        return members.first { read.contains($0.name) && !seen.insert($0.name).inserted }.map { "\($0.name) is repeated" }
    }
}

extension AnswerMembers: Redacted {
    /// How many members there are; no names and no values.
    package var text: String { "AnswerMembers(\(members.count))" }
}
