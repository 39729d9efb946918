import AccessTokensOAuth
import Crypto
import CryptoExtras
import Foundation

extension ClientAuthentication {
    /// Signs with an elliptic curve key (`ES256`).
    static func privateKeyJWT(
        signedBy key: P256.Signing.PrivateKey, keyID: String? = nil
    ) -> ClientAuthentication {
        privateKeyJWT(algorithm: "ES256", keyID: keyID) { bytes in
            // R and S, 32 bytes each, not DER.
            try key.signature(for: bytes).rawRepresentation
        }
    }

    /// Signs with an RSA key (`RS256`), for servers that know no other.
    static func privateKeyJWT(
        signedBy key: _RSA.Signing.PrivateKey, keyID: String? = nil
    ) -> ClientAuthentication {
        privateKeyJWT(algorithm: "RS256", keyID: keyID) { bytes in
            // The padding that RFC 7518 §3.3 demands.
            try key.signature(for: bytes, padding: .insecurePKCS1v1_5)
                .rawRepresentation
        }
    }
}
