#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The proxy that the environment names for requests without TLS, where `URLSession` uses libcurl.
///
/// A proxy reads such a request, even one to this machine itself, and no setting of a session turns it off: libcurl reads the
/// environment, and Foundation ignores `connectionProxyDictionary`. With TLS a proxy sees only the host's name.
///
/// Source: `CURLOPT_PROXY` and `CURLOPT_NOPROXY` in libcurl's manual; measured with Swift 6.3.1.
package enum EnvironmentProxy {
    /// Returns why a secret must not be sent to a host without TLS, and how to correct it; `nil` if it may be sent.
    ///
    /// On Apple platforms always `nil`: the system's settings apply there, not the environment.
    ///
    /// - Parameters:
    ///   - host: The request's host.
    ///   - environment: Returns a variable's value, of the process's own environment, unless a test says otherwise. Only the five
    ///     variables that matter are read, at each request, as libcurl does: to copy the whole environment takes half as long as
    ///     the rest of a request.
    package static func objection(
        toPlainRequestTo host: String,
        in environment: (_ variable: String) -> String? = { unsafe getenv($0).map { unsafe String(cString: $0) } }
    ) -> String? {
        #if canImport(FoundationNetworking)
        guard let variable = variable(forPlainRequestTo: host, in: environment) else { return nil }
        // Don't show the value: it may contain a password.
        return "the environment's \(variable) sends it through a proxy, which would read it: add \(host) to no_proxy"
        #else
        return nil
        #endif
    }

    /// The variable that names the proxy; an empty one names none.
    ///
    /// `HTTP_PROXY` is not among them: in a CGI program it holds a header of the client.
    private static func variable(forPlainRequestTo host: String, in environment: (String) -> String?) -> String? {
        func given(_ name: String) -> String? { environment(name).flatMap { $0.isEmpty ? nil : $0 } }
        guard let proxy = ["http_proxy", "all_proxy", "ALL_PROXY"].first(where: { given($0) != nil }) else { return nil }
        let exceptions = given("no_proxy") ?? given("NO_PROXY") ?? ""
        // Only whole names: which suffixes and address ranges libcurl understands depends on its version.
        let isException =
            exceptions == "*"
            || exceptions.lowercased().split { $0 == "," || $0 == " " || $0 == "\t" }.contains { $0 == host.lowercased() }
        return isException ? nil : proxy
    }
}
