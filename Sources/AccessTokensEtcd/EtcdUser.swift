import AccessTokensHTTP
import TokenServiceConcurrency

/// A user of etcd: no description, dump or mirror shows the password.
struct EtcdUser: Sendable {
    let name, password: String
}

extension EtcdUser: Redacted {
    var text: String { "EtcdUser(\(ServerText.line(name)))" }
}
