import AccessTokens
import AccessTokensHTTP
import AccessTokensSharing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The gateway's answers, read strictly: an unusable answer is an error, never “there is no record”.
enum EtcdAnswer {
    /// The longest answer that is read, in bytes: twice the largest record that etcd accepts by default.
    static let maximumSize = 4 << 20

    /// Part of every answer; an answer without it doesn't come from etcd.
    struct Header: Decodable {
        let revision: String
    }

    struct KeyValue: Decodable {
        let key: Data
        let modRevision: String
        let value: Data?
    }

    struct Range: Decodable {
        let header: Header
        let kvs: [KeyValue]?
        let count: String?

        /// The record of the key; `nil` if it has none.
        func record(of key: Data) throws(EtcdError) -> SharedRecord? {
            _ = try EtcdAnswer.revision(header.revision)
            let found = kvs ?? []
            try require(found.count <= 1 && (count ?? "0") == "\(found.count)", "its number of keys (\(found.count)) is wrong")
            guard let found = found.first else { return nil }
            try require(found.key == key, "it is for another key")
            let revision = try EtcdAnswer.revision(found.modRevision)
            return SharedRecord(found.value ?? Data(), revision: SharedRecord.Revision("\(revision)"))
        }
    }

    struct Transaction: Decodable {
        struct Response: Decodable {
            let responsePut: Put?
            let responseRange: Range?
        }

        struct Put: Decodable {}

        let header: Header
        let succeeded: Bool?
        let responses: [Response]?

        /// Returns the outcome of a swap; `expected` is 0 if there must not be a record.
        func swap(ifAt expected: Int64, of key: Data) throws(EtcdError) -> SharedRecord.Swap {
            let response = responses?.first
            try require(responses?.count == 1, "it doesn't have exactly one result")
            if succeeded == true {
                let revision = try EtcdAnswer.revision(header.revision)
                try require(response?.responsePut != nil, "it succeeded without a write")
                try require(revision > expected, "the revision went backwards")
                return .done(SharedRecord.Revision("\(revision)"))
            }
            guard let range = response?.responseRange else {
                throw EtcdError(.unreadableAnswer, "it reports a conflict without the current record")
            }
            let current = try range.record(of: key)
            try require((current?.revision.text ?? "0") != "\(expected)", "it reports a conflict at the expected revision")
            return .conflict(current)
        }
    }

    struct Authentication: Decodable {
        let token: String

        /// Returns the token, which must fit a header.
        func validToken() throws(EtcdError) -> String {
            try require(HTTPToken.isVisible(token), "its token doesn't fit a header")
            return token
        }
    }

    struct Refusal: Decodable {
        let error: String?
        let message: String?
        /// The gRPC code (https://grpc.io/docs/guides/status-codes).
        let code: Int?
    }

    /// Decodes an answer; no error quotes its contents.
    static func decode<Answer: Decodable>(_ type: Answer.Type, from body: Data) throws(EtcdError) -> Answer {
        try require(body.count <= maximumSize, "it is longer than \(maximumSize) bytes")
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        do {
            return try decoder.decode(type, from: body)
        } catch DecodingError.keyNotFound(let key, _) {
            throw EtcdError(.unreadableAnswer, "\(key.stringValue) is missing")
        } catch DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context) {
            let member = context.codingPath.last?.stringValue
            throw EtcdError(.unreadableAnswer, member.map { "\($0) has the wrong type" } ?? "it is not a JSON object")
        } catch DecodingError.dataCorrupted(let context) where !context.codingPath.isEmpty {
            throw EtcdError(.unreadableAnswer, "\(context.codingPath.last?.stringValue ?? "a member") has an invalid value")
        } catch {
            throw EtcdError(.unreadableAnswer, "it is not JSON")
        }
    }

    /// Reads a revision: etcd counts from 1.
    private static func revision(_ text: String) throws(EtcdError) -> Int64 {
        guard let revision = Int64(text), revision > 0, text == "\(revision)" else {
            throw EtcdError(.unreadableAnswer, "a revision is not a positive number")
        }
        return revision
    }
}

private func require(_ condition: Bool, _ problem: @autoclosure () -> String) throws(EtcdError) {
    guard condition else { throw EtcdError(.unreadableAnswer, problem()) }
}
