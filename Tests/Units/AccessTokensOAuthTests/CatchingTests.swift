import AccessTokens
import AccessTokensOAuth
import Foundation
import Testing

/// Errors caught the way programs catch them.
struct CatchingTests {
    @Test func `an OAuth error can be caught by its type and a condition in a throwing function`() throws {
        func code(of url: URL, _ id: String) throws -> OAuthError.Code? {
            do {
                _ = try OAuthClient(id: id, tokenURL: url)
                return nil
            } catch let error as OAuthError where error.code == .invalidConfiguration && error.remedy == .clientRegistration {
                return error.code
            }
        }
        let url = try #require(URL(string: "https://as.example/token"))
        #expect(try code(of: url, "") == .invalidConfiguration)
        #expect(try code(of: url, "me") == nil)
    }

    // Swift 6.3.1 crashes while it compiles such a `catch` after a call that throws one concrete type.
    @Test func `no public function uses typed throws`() throws {
        let sources = URL(filePath: #filePath).appending(path: "../../../../Sources").standardized
        let files = FileManager.default.enumerator(at: sources, includingPropertiesForKeys: nil)?.compactMap { $0 as? URL } ?? []
        let swift = files.filter { $0.pathExtension == "swift" }
        #expect(swift.count > 100)
        for file in swift {
            let text = try String(contentsOf: file, encoding: .utf8)
            for match in text.matches(of: #/public [^{}=]*?(?:func|init)[^{}]*?throws\((\w+)\)/#) {
                #expect(match.1 == "Failure", "\(file.lastPathComponent): \(match.0)")
            }
        }
    }
}
