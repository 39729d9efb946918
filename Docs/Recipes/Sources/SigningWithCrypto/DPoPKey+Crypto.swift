import AccessTokensDPoP
import Crypto
import Foundation

extension DPoPKey {
    /// Signs proofs with an elliptic curve key (`ES256`).
    convenience init(signedBy key: P256.Signing.PrivateKey) throws {
        try self.init(
            .p256(key.publicKey.rawRepresentation), algorithm: "ES256"
        ) { bytes in
            // R and S, 32 bytes each, not DER.
            try key.signature(for: bytes).rawRepresentation
        }
    }
}
