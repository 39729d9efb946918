#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Finds the members of a JSON object that we read, each as often as it comes, also where a decoder gives up.
///
/// A decoder does not report a repeated name, and returns nothing of a body that breaks a rule anywhere.
struct MemberScanner {
    private let bytes: [UInt8]
    private var index = 0

    init(_ body: Data) {
        bytes = Array(body)
    }

    /// Returns the object's own members in their order, with their text where the value is a whole string.
    ///
    /// Returns those before the body breaks off; none if it is not an object.
    mutating func members() -> [(name: TokenMember, text: String?)] {
        // A byte order mark may stand in front, and blanks.
        guard bytes.first(where: { !" \t\r\n\u{FEFF}".utf8.contains($0) }) == UInt8(ascii: "{") else { return [] }
        var members: [(name: TokenMember, text: String?)] = []
        var depth = 0
        // The last string, which is a name if a colon follows; and whether a value of the last one of `members` may follow.
        var (string, isOpen) = (ArraySlice<UInt8>(), false)
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
            case UInt8(ascii: "\""):
                guard let literal = skipString() else { return members }
                if depth == 1 { string = literal }
                if depth == 1, isOpen { members[members.count - 1].text = Self.text(literal) }
            case UInt8(ascii: ":") where depth == 1:
                let name = Self.text(string).flatMap(TokenMember.init(rawValue:))
                if let name { members.append((name, nil)) }
                isOpen = name != nil
            case UInt8(ascii: ",") where depth == 1: isOpen = false
            default: break
            }
            index += 1
        }
        return members
    }

    /// Moves to the end of a string and returns it with its quotes; `nil` if it has no end.
    private mutating func skipString() -> ArraySlice<UInt8>? {
        let start = index
        index += 1
        while index < bytes.count, bytes[index] != UInt8(ascii: "\"") { index += bytes[index] == UInt8(ascii: "\\") ? 2 : 1 }
        return index < bytes.count ? bytes[start...index] : nil
    }

    /// Returns the text of a string with its quotes, which may be written with escapes; `nil` if it is none.
    private static func text(_ literal: ArraySlice<UInt8>) -> String? {
        literal.contains(UInt8(ascii: "\\"))
            ? try? JSONDecoder().decode(String.self, from: Data(literal))
            : String(validating: literal.dropFirst().dropLast(), as: UTF8.self)
    }
}
