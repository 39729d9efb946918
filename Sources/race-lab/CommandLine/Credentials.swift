/// What the authorization server wants from the lab, as the environment has it.
///
/// No argument may carry it: other users of a machine can read a program's arguments.
enum Credentials: Equatable {
    /// A client in its own name.
    case client(secret: String)
    /// A client that acts for a user; without a secret a public one. The refresh token may be missing where a store has one.
    case user(refreshToken: String?, secret: String?)

    /// Reads the environment.
    ///
    /// - Parameter hasStore: Whether there is a file that may hold a refresh token.
    init(in environment: [String: String], hasStore: Bool) throws(UsageError) {
        func value(of secret: Secret) -> String? {
            environment[secret.rawValue].flatMap { $0.isEmpty ? nil : $0 }
        }
        let secret = value(of: .client)
        let refreshToken = value(of: .refreshToken)
        if refreshToken != nil || hasStore {
            self = .user(refreshToken: refreshToken, secret: secret)
        } else if let secret {
            self = .client(secret: secret)
        } else {
            throw UsageError("neither CLIENT_SECRET nor REFRESH_TOKEN is set: \(Secret.client.advice)")
        }
    }

    /// The environment's variables.
    enum Secret: String, CaseIterable {
        case client = "CLIENT_SECRET"
        case refreshToken = "REFRESH_TOKEN"
        case etcd = "ETCD_PASSWORD"

        /// What it is, and a part of the name of an option that may be tried instead.
        private var terms: (name: String, optionPart: String) {
            switch self {
            case .client: ("client's secret", "secret")
            case .refreshToken: ("refresh token", "refresh")
            case .etcd: ("password of etcd's user", "password")
            }
        }

        var optionPart: String { terms.optionPart }

        var advice: String {
            "put the \(terms.name) into the environment, for example with 'read -rs \(rawValue); export \(rawValue)'"
        }
    }
}
