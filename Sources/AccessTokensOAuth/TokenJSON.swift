#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The JSON of a token endpoint's answers, read strictly where a token depends on it.
///
/// Source: RFC 6749 §5.1; RFC 8259.
enum TokenJSON {
    /// Why a body cannot be read, in words that quote nothing of it.
    struct Problem: Error {
        let text: String
    }

    /// Decodes the body: one object in UTF-8, whose members that we read come once.
    ///
    /// - Parameters:
    ///   - type: What to decode.
    ///   - body: The answer's body.
    ///   - singular: The members that must not come twice.
    static func decode<Members: Decodable>(
        _ type: Members.Type, from body: Data, singular: Set<TokenMember> = Set(TokenMember.allCases)
    ) throws(Problem) -> Members {
        guard !body.isEmpty else { throw Problem(text: "it is empty") }
        guard body.count <= TokenResponse.maximumBodySize else { throw Problem(text: "it is too long") }
        // The decoder would take a body full of zeros for UTF-16.
        guard String(validating: body, as: UTF8.self) != nil, !body.contains(0) else {
            throw Problem(text: "it is not UTF-8")
        }
        do {
            let members = try JSONDecoder().decode(type, from: body)
            // Only a known name is repeated in the text: nothing else of the body is.
            if let name = repeatedMember(of: singular, in: body) { throw Problem(text: "\(name) comes twice") }
            return members
        } catch let problem as Problem {
            throw problem
        } catch DecodingError.keyNotFound(let key, _) {
            throw Problem(text: "\(key.stringValue) is missing")
        } catch DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context) {
            throw Problem(text: context.codingPath.last.map { "\($0.stringValue) has a wrong type" } ?? "it is no JSON object")
        } catch DecodingError.dataCorrupted(let context) {
            throw Problem(text: context.codingPath.last.map { "\($0.stringValue) has a wrong value" } ?? "it is not JSON")
        } catch {
            throw Problem(text: "it is not JSON")
        }
    }

    /// Returns a member that we read and that the object holds more than once, which the decoder would not tell.
    ///
    /// The body is known to be a valid object: its names are the strings at depth one that a colon follows.
    private static func repeatedMember(of singular: Set<TokenMember>, in body: Data) -> String? {
        var seen: Set<String> = []
        var depth = 0
        var lastString: Range<Data.Index>?
        var index = body.startIndex
        while index < body.endIndex {
            switch body[index] {
            case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
            case UInt8(ascii: "\""):
                let start = index
                index += 1
                while index < body.endIndex, body[index] != UInt8(ascii: "\"") {
                    index += body[index] == UInt8(ascii: "\\") ? 2 : 1
                }
                lastString = start..<min(index + 1, body.endIndex)
            case UInt8(ascii: ":") where depth == 1:
                if let lastString, let name = string(body[lastString]),
                    let member = TokenMember(rawValue: name), singular.contains(member), !seen.insert(name).inserted
                {
                    return name
                }
            default: break
            }
            index += 1
        }
        return nil
    }

    /// Returns the text of a string with its quotes, which may be written with escapes.
    private static func string(_ literal: Data) -> String? {
        literal.contains(UInt8(ascii: "\\"))
            ? try? JSONDecoder().decode(String.self, from: literal)
            : String(decoding: literal.dropFirst().dropLast(), as: UTF8.self)
    }
}
