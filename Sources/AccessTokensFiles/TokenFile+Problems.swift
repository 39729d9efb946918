import AccessTokens

/// Reports the format's and the system's problems as errors of this file.
extension TokenFile {
    func encode(_ stored: StoredToken) throws(TokenFileError) -> [UInt8] {
        do { return try StoredTokenFormat.encode(stored) } catch { throw problem(error) }
    }

    func decode(_ bytes: [UInt8]) throws(TokenFileError) -> StoredToken {
        do { return try StoredTokenFormat.decode(bytes) } catch {
            throw bytes.isEmpty ? TokenFileError(.damaged, path: path, detail: "it is empty") : problem(error)
        }
    }

    func problem(_ problem: StoredTokenFormat.Problem) -> TokenFileError {
        switch problem {
        case .foreign: TokenFileError(.notATokenFile, path: path, detail: "it doesn't begin with a token file's header")
        case .damaged: TokenFileError(.damaged, path: path, detail: "it is cut off or altered")
        case .unsupportedVersion(let version):
            TokenFileError(.unsupportedVersion, path: path, detail: "version \(version), not \(StoredTokenFormat.version)")
        case .notRepresentable:
            TokenFileError(.writeFailed, path: path, detail: "the time of its receipt is not a finite number")
        case .tooLarge:
            TokenFileError(.writeFailed, path: path, detail: "the token is larger than \(StoredTokenFormat.largest) bytes")
        }
    }

    package func failure(_ code: TokenFileError.Code, _ failure: SystemFailure) -> TokenFileError {
        TokenFileError(code, path: path, failure)
    }
}
