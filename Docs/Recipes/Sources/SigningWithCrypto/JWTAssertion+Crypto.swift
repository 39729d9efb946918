import AccessTokensOAuth
import Crypto
import CryptoExtras
import Foundation

extension JWTAssertion {
    /// Signs with an elliptic curve key (`ES256`).
    init(signedBy key: P256.Signing.PrivateKey, keyID: String? = nil) {
        self.init(algorithm: "ES256", keyID: keyID) { bytes in
            // R and S, 32 bytes each, not DER.
            try key.signature(for: bytes).rawRepresentation
        }
    }

    /// Signs with an RSA key (`RS256`), for servers that know no other.
    init(signedBy key: _RSA.Signing.PrivateKey, keyID: String? = nil) {
        self.init(algorithm: "RS256", keyID: keyID) { bytes in
            // The padding that RFC 7518 §3.3 demands.
            try key.signature(for: bytes, padding: .insecurePKCS1v1_5)
                .rawRepresentation
        }
    }
}
