import Foundation

/// Where the tool signs in and what it calls: write your own here, and
/// nowhere else.
struct Settings {
    /// What its users type; the executable target has the same name.
    static let name = "reports"
    /// In the environment, names another server for everything, for
    /// tests.
    static let serverVariable = name.uppercased() + "_SERVER"
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

    init(
        _ environment: [String: String] = ProcessInfo.processInfo
            .environment
    ) throws {
        func url(_ server: String, _ path: String) throws -> URL {
            let server = environment[Self.serverVariable] ?? server
            guard let url = URL(string: server) else {
                throw CocoaError(.coderInvalidValue)
            }
            return url.appending(path: path)
        }
        let login = "https://login.example.com"
        tokenURL = try url(login, "token")
        deviceURL = try url(login, "device")
        authorizationURL = try url(login, "authorize")
        revocationURL = try url(login, "revoke")
        userURL = try url("https://api.example.com", "user")
        // A local disk: locks on network volumes are unreliable.
        let home = environment["HOME"] ?? NSHomeDirectory()
        let state =
            environment["XDG_STATE_HOME"] ?? home + "/.local/state"
        let folder = state + "/" + Self.name
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700])
        session = folder + "/session"
    }
}
