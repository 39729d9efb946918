import AccessTokensHTTP
import TokenServiceConcurrency

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// The members of an authorization server's answer, by name.
///
/// An answer is a JSON object or, from some servers, a form, whatever its content type says. A server may write a secret
/// anywhere: no description, dump or mirror shows a member.
///
/// Source: RFC 6749 §5.1; RFC 8259.
public struct ResponseMembers: Sendable {
    /// The same limit as for a transport's body.
    package static let maximumSize = 1 << 20

    private let body: Data
    private let members: [JSONScanner.Member]
    /// Why the body can't be used, without quoting it; `nil` if it can.
    package let problem: String?
    /// What kind of body it is, for a refusal.
    let kind: Refusal.Body
    private let isForm: Bool

    /// - Parameter canBeForm: Whether a body that isn't JSON may be a form instead.
    package init(_ body: Data, canBeForm: Bool = false) {
        self.body = body
        guard !body.isEmpty, body.count <= Self.maximumSize else {
            (members, problem, isForm) = ([], body.isEmpty ? "it is empty" : "it is too long", false)
            kind = body.isEmpty ? .empty : .foreign
            return
        }
        var scanner = JSONScanner(body)
        let json = scanner.object()
        let isUTF8 = String(validating: body, as: UTF8.self) != nil && !body.contains(0)
        guard canBeForm, json.problem != nil || !isUTF8 else {
            (members, isForm) = (json.members, false)
            problem = isUTF8 ? json.problem ?? Self.repeated(json.members) : "it is not UTF-8"
            kind = isUTF8 && json.problem == nil ? .object : .foreign
            return
        }
        // Half JSON and half a form is neither, but no refresh token in it may be lost. A page grants nothing.
        let form = FormEncoding.members(in: json.outside)
        isForm = isUTF8 && form.isForm && json.members.isEmpty && !body.contains(UInt8(ascii: "{"))
        members = form.members + json.members
        problem =
            switch (isUTF8, isForm) {
            case (false, _): "it is not UTF-8"
            case (_, false): json.problem
            default: form.isUTF8 ? Self.repeated(form.members) : "its percent-encodings are not UTF-8"
            }
        // Many a text could be a form.
        let isOAuth = members.contains { $0.name == "error" || $0.name == "access_token" }
        kind = isForm && form.isUTF8 && isOAuth ? .object : .foreign
    }

    /// The text of a member, such as `id_token` or `issued_token_type`; `nil` if it is missing, empty, repeated or not a string.
    ///
    /// A list of scopes (`scope`) is read as one text with spaces.
    public subscript(name: String) -> String? {
        guard case .string(let text)? = value(name), !text.isEmpty else { return nil }
        return text
    }

    /// Decodes the whole answer; in a form, each value is a text.
    ///
    /// - Throws: ``OAuthError`` with the code `unreadableResponse`, which quotes nothing of the answer.
    public func decoded<Answer: Decodable>(as type: Answer.Type) throws -> Answer {
        do {
            let texts = isForm ? Dictionary(members.map { ($0.name, $0.value.text) }) { first, _ in first } : nil
            return try JSONDecoder().decode(type, from: texts.map { try JSONEncoder().encode($0) } ?? body)
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
        if name == "scope", let scopes = values[0].texts { return .string(scopes.joined(separator: " ")) }
        return values[0]
    }

    /// The refresh tokens, even of a body that can't be used otherwise; several if the name repeats.
    var refreshTokens: [String] { texts(of: ["refresh_token"]) }

    /// Whether it has tokens, which errors must not carry on.
    var hasTokens: Bool { !texts(of: ["access_token", "refresh_token", "id_token"]).isEmpty }

    /// How long the refresh token is valid; zero: without a limit, as with Keycloak's offline access.
    ///
    /// A non-standard member with three names, one of them Intuit's. An invalid or repeated value is ignored, and so is any value of a damaged answer, so
    /// that no token is lost or expires too soon.
    var refreshTokenLifetime: Duration? {
        guard problem == nil else { return nil }
        return seconds("refresh_token_expires_in") ?? seconds("refresh_expires_in") ?? seconds("x_refresh_token_expires_in")
    }

    /// How long the access token is valid; `nil` if the answer doesn't say, as with zero or less.
    ///
    /// The first of these members counts that says something: `expires_in_sec`, which Zoho sends since its `expires_in` was in
    /// milliseconds; `expires_in`; `expires`, a number of seconds or a date; `expires_on` and `expires_at`, which are dates.
    ///
    /// - Parameter sent: When the server sent the answer, by its own clock if it says so.
    func lifetime(from sent: Date) -> Duration? {
        for name in ["expires_in_sec", "expires_in", "expires", "expires_on", "expires_at"] {
            guard let value = value(name) else { continue }
            let isLifetime =
                name.hasPrefix("expires_in")
                || name == "expires" && value.number.map { $0 < Self.earliestDate } ?? false
            let lifetime =
                isLifetime ? value.seconds : value.date.flatMap { Duration.seconds(read: $0.timeIntervalSince(sent)) }
            if let lifetime, lifetime > .zero { return lifetime }
        }
        return nil
    }

    /// In September 2001; a smaller number is a number of seconds from now.
    private static let earliestDate = 1e9

    /// The time in a member; `nil` if it has none.
    func seconds(_ name: String) -> Duration? { value(name)?.seconds }

    /// The moment in a member; `nil` if it has none, or it is zero or less.
    package func date(_ name: String) -> Date? {
        value(name)?.date.flatMap { $0.timeIntervalSince1970 > 0 ? $0 : nil }
    }

    /// The issued secrets, which no text may show.
    ///
    /// - Parameter isRefusal: Whether a `code` is one of an error.
    func secrets(isRefusal: Bool) -> [String] {
        texts(of: [
            "access_token", "refresh_token", "id_token", "device_code", "user_code", "request_uri", "client_secret",
            "registration_access_token",
        ])
            + (isRefusal ? [] : texts(of: ["code"]))
    }

    private func texts(of names: Set<String>) -> [String] {
        members.filter { names.contains($0.name) }.compactMap(\.value.text)
    }

    /// Reports a repeated member that we read, by name; shows nothing else of the body.
    private static func repeated(_ members: [JSONScanner.Member]) -> String? {
        let read: Set<String> = [
            "access_token", "token_type", "expires_in", "expires_in_sec", "expires", "expires_on", "expires_at", "refresh_in",
            "refresh_token", "scope", "error", "error_description",
        ]
        var seen: Set<String> = []
        return members.first { read.contains($0.name) && !seen.insert($0.name).inserted }.map { "\($0.name) is repeated" }
    }
}

extension ResponseMembers: Redacted {
    /// How many members there are; no names and no values.
    package var text: String { "ResponseMembers(\(members.count))" }
}
