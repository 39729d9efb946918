import AccessTokensDPoP
import AccessTokensTesting
import Foundation
import TokenServiceConcurrency

extension DPoPKey {
    /// A key whose signatures no test checks.
    static func test(
        _ byte: UInt8 = 1, clock: ManualClock = ManualClock(), wallClock: @escaping @Sendable () -> Date = { Date() },
        executor: (any TaskExecutor)? = nil,
        sign: @escaping @Sendable @concurrent (Data) async throws -> Data = { _ in Data(repeating: 7, count: 64) }
    ) throws -> DPoPKey {
        let count = Lock(0)
        return try DPoPKey(
            .p256(Data(repeating: byte, count: 64)), algorithm: "ES256", clock: clock, wallClock: wallClock,
            makeID: {
                count.withLock { count in
                    count += 1
                    return "proof-\(count)"
                }
            }, executor: executor, sign: sign)
    }
}

/// A proof as a server reads it.
struct SentProof {
    let text: String
    let header: [String: any Sendable]
    let claims: [String: any Sendable]

    init?(_ text: String?) {
        guard let text else { return nil }
        let parts = text.split(separator: ".").map { part in
            let base64 = part.replacing("-", with: "+").replacing("_", with: "/")
            let data = Data(base64Encoded: base64 + String(repeating: "=", count: (4 - base64.count % 4) % 4)) ?? Data()
            return (try? JSONSerialization.jsonObject(with: data)) as? [String: any Sendable]
        }
        guard parts.count == 3, let header = parts[0], let claims = parts[1] else { return nil }
        self.text = text
        self.header = header
        self.claims = claims
    }

    subscript(claim: String) -> String? { claims[claim] as? String }
}

/// Returns every text that a value has.
func texts(_ value: Any) -> String {
    var dumped = ""
    dump(value, to: &dumped)
    return "\(value) \(String(reflecting: value)) \(dumped) \(Mirror(reflecting: value).children.map { "\($0)" })"
}
