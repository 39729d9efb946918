import AccessTokensHTTP

/// What an answer says about a refusal, wherever it says so.
extension ResponseMembers {
    /// The server's code: `error` (RFC 6749 §5.2), or what stands in its place; `nil` if there is none.
    var refusalCode: String? {
        if let error = self["error"] { return error }
        let codes = ["code", "error_code", "errorCode", "errorType", "code_name", "type", "status", ".tag"]
        let inside: [JSONScanner.Value] = codes.compactMap { error[$0] } + codes.compactMap { errors[$0] }
        let values = inside + ["error_code", "errorCode", "code", "errcode", "error"].compactMap { value($0) }
        return values.compactMap(\.text).first { !$0.isEmpty } ?? values.compactMap(\.shownNumber).first
            ?? self["status"]
    }

    /// The server's explanation: `error_description` (RFC 6749 §5.2), or what stands in its place; `nil` if there is none.
    var refusalWords: String? {
        if let description = self["error_description"] { return description }
        let names = [
            "message", "reason", "error_message", "errorMessage", "errorSummary", "error_summary", "msg", "errmsg", "detail",
            "error_reason", "title", "err",
        ]
        func words(in read: (String) -> JSONScanner.Value?) -> String? {
            names.compactMap { read($0)?.text }.first { !$0.isEmpty }
        }
        let first = words { error[$0] } ?? words(in: value)
        let others = words { errors[$0] } ?? errors.values.compactMap(\.text).joined(separator: " ")
        let number = self["error"] == nil ? error["code"]?.shownNumber : nil
        let texts = [first, others, number.map { "code \($0)" }].compactMap(\.self).filter { !$0.isEmpty }
        return texts.isEmpty ? nil : texts.joined(separator: ", ")
    }

    /// Whether the answer is a refusal whatever its status says, such as Slack's `"ok": false`.
    ///
    /// Without a token, that is. Some servers send such members in every answer, with a zero or an empty list.
    var isRefusal: Bool {
        guard value("access_token") == nil else { return false }
        let isUnhappy = value("ok") == .bool(false) || value("success") == .bool(false)
        return isUnhappy
            || ["error", "errors", "error_code", "errorCode", "errcode"].contains { value($0)?.saysSomething ?? false }
    }

    private var error: Part { self["error"] == nil ? Part(value("error")) : Part(nil) }

    private var errors: Part { Part(value("errors")) }

    /// What servers put in the place of `error`: an object, or a list of objects or texts, of which the first counts.
    private struct Part {
        private let members: [JSONScanner.Member]

        init(_ value: JSONScanner.Value?) {
            switch value {
            case .object(let members): self.members = members
            case .list(let list): self = Part(list.first)
            case .string: members = value.map { [JSONScanner.Member(name: "message", value: $0)] } ?? []
            default: members = []
            }
        }

        subscript(name: String) -> JSONScanner.Value? { members.first { $0.name == name }?.value }

        var values: [JSONScanner.Value] { members.map(\.value) }
    }
}

extension JSONScanner.Value {
    fileprivate var shownNumber: String? {
        if case .number(let number) = self { Int64(exactly: number).map(String.init) ?? "\(number)" } else { nil }
    }

    fileprivate var saysSomething: Bool {
        switch self {
        case .string(let text): !text.isEmpty
        case .number(let number): number != 0
        case .bool(let isTrue): isTrue
        case .list(let values): !values.isEmpty
        case .object(let members): !members.isEmpty
        case .null, .other: false
        }
    }
}
