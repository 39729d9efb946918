import Foundation

/// Where the tool signs in and what it calls: write your own here.
struct Settings {
    let name = "reports"
    let clientID = "reports-tool"
    let scope = "reports.read"
    let tokenURL: URL
    let deviceURL: URL
    let authorizationURL: URL
    let revocationURL: URL
    /// Tells whose token a request carries.
    let userURL: URL
    /// The session's file, which all processes of the tool share.
    let session: String

    /// - Parameter environment: `REPORTS_SERVER` is another server, for
    ///   tests.
    init(
        _ environment: [String: String] = ProcessInfo.processInfo.environment
    ) throws {
        let address =
            environment["REPORTS_SERVER"] ?? "https://login.example.com"
        guard let server = URL(string: address) else {
            throw CocoaError(.coderInvalidValue)
        }
        tokenURL = server.appending(path: "token")
        deviceURL = server.appending(path: "device")
        authorizationURL = server.appending(path: "authorize")
        revocationURL = server.appending(path: "revoke")
        userURL = server.appending(path: "user")
        // A local disk: locks on network volumes are unreliable.
        let home = environment["HOME"] ?? NSHomeDirectory()
        let state = environment["XDG_STATE_HOME"] ?? home + "/.local/state"
        let folder = state + "/" + name
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700])
        session = folder + "/session"
    }
}
