#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The proxy that the environment names for requests without TLS, where libcurl is below `URLSession`.
///
/// A proxy reads such a request, also one to this machine itself, and no setting of a session turns it off: libcurl asks the
/// environment, and Foundation ignores `connectionProxyDictionary`. With TLS a proxy sees the host's name and no more.
///
/// Source: `CURLOPT_PROXY` and `CURLOPT_NOPROXY` in libcurl's manual; measured with Swift 6.3.1.
package enum EnvironmentProxy {
    /// Returns what is wrong with sending a secret to a host without TLS, and what to do about it; `nil`: nothing.
    ///
    /// On Apple platforms always `nil`: the system's settings count there, not the environment.
    ///
    /// - Parameters:
    ///   - host: The request's host.
    ///   - environment: The process's own, unless a test says otherwise. Read at each request, as libcurl does.
    package static func objection(
        toPlainRequestTo host: String, in environment: [String: String] = ProcessInfo.processInfo.environment
    ) -> String? {
        #if canImport(FoundationNetworking)
        guard let variable = variable(forPlainRequestTo: host, in: environment) else { return nil }
        // Not the value: it may hold a password.
        return "the environment's \(variable) sends it through a proxy, which would read it: add \(host) to no_proxy"
        #else
        return nil
        #endif
    }

    /// The variable that names the proxy; an empty one names none.
    ///
    /// `HTTP_PROXY` is not among them: in a CGI program it is a header of the client's.
    static func variable(forPlainRequestTo host: String, in environment: [String: String]) -> String? {
        func value(_ name: String) -> String? { environment[name].flatMap { $0.isEmpty ? nil : $0 } }
        let exceptions = value("no_proxy") ?? value("NO_PROXY") ?? ""
        // What libcurl understands beside whole names (suffixes, address ranges) depends on its version, and may change.
        let isException =
            exceptions == "*"
            || exceptions.lowercased().split { $0 == "," || $0 == " " || $0 == "\t" }.contains { $0 == host.lowercased() }
        return isException ? nil : ["http_proxy", "all_proxy", "ALL_PROXY"].first { value($0) != nil }
    }
}

extension TokenRequest {
    /// Throws if a proxy would read the request.
    func requirePrivacy() throws(OAuthError) {
        guard url.scheme?.lowercased() != "https",
            let objection = EnvironmentProxy.objection(toPlainRequestTo: url.host ?? "")
        else { return }
        throw OAuthError(.invalidConfiguration, detail: objection)
    }
}
