#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The JSON of a token endpoint's answers, read strictly where a token depends on it.
///
/// Source: RFC 6749 §5.1; RFC 8259.
enum TokenJSON {
    /// Why a body cannot be read, without quoting it.
    struct Problem: Error {
        let text: String
    }

    /// Decodes the body: one object in UTF-8 that repeats none of the members that we read.
    static func decode<Members: Decodable>(_ type: Members.Type, from body: Data) throws(Problem) -> Members {
        guard !body.isEmpty else { throw Problem(text: "it is empty") }
        guard body.count <= TokenResponse.maximumBodySize else { throw Problem(text: "it is too long") }
        // The decoder would take a body full of zeros for UTF-16.
        guard String(validating: body, as: UTF8.self) != nil, !body.contains(0) else {
            throw Problem(text: "it is not UTF-8")
        }
        do {
            let members = try JSONDecoder().decode(type, from: body)
            // Only a known name is repeated in the text: nothing else of the body is.
            if let name = repeatedMember(in: body) { throw Problem(text: "\(name) is repeated") }
            return members
        } catch let problem as Problem {
            throw problem
        } catch DecodingError.keyNotFound(let key, _) {
            throw Problem(text: "\(key.stringValue) is missing")
        } catch DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context) {
            throw Problem(
                text: context.codingPath.last.map { "\($0.stringValue) has the wrong type" } ?? "it is not a JSON object")
        } catch DecodingError.dataCorrupted(let context) {
            throw Problem(text: context.codingPath.last.map { "\($0.stringValue) has an invalid value" } ?? "it is not JSON")
        } catch {
            throw Problem(text: "it is not JSON")
        }
    }

    /// Returns a member that we read and that the object has more than once.
    private static func repeatedMember(in body: Data) -> String? {
        var scanner = MemberScanner(body)
        var seen: Set<TokenMember> = []
        return scanner.members().first { !seen.insert($0.name).inserted }?.name.rawValue
    }

    /// Returns the refresh tokens in a body, whatever else it says: also one that is cut off or not JSON altogether.
    static func refreshTokens(in body: Data) -> [String] {
        guard body.count <= TokenResponse.maximumBodySize else { return [] }
        var scanner = MemberScanner(body)
        return scanner.members().filter { $0.name == .refreshToken }.compactMap(\.text)
    }
}
