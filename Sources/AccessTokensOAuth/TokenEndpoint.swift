import AccessTokensHTTP

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// An endpoint of an authorization server, checked before anything is sent to it.
///
/// Source: RFC 6749 §3.2 (TLS, no fragment, no empty or repeated parameter), §2.3.1 (no secret in the URL).
struct TokenEndpoint: Sendable {
    let url: URL
    /// The URL's name in errors.
    private let name: String
    private let namesInQuery: Set<String>

    init(_ name: String, _ url: URL) throws(OAuthError) {
        self.url = url.normalized
        self.name = name
        namesInQuery = Set(URLComponents(url: url, resolvingAgainstBaseURL: true)?.queryItems?.map(\.name) ?? [])
        try Self.require(url.host?.isEmpty == false, "the \(name) must name a host")
        try Self.require(url.fragment == nil, "the \(name) must not have a fragment")
        try Self.require(url.user == nil && url.password == nil, "the \(name) must not contain a user or a password")
        let host = url.host(percentEncoded: true) ?? "missing"
        try Self.require(
            Origin(url)?.isPrivate == true,
            "the \(name) must begin with https, or with http for a loopback address; its host is \(host)")
        try Self.require(
            ParameterNames.reserved.isDisjoint(with: namesInQuery), "the \(name)'s query repeats a parameter of the form")
    }

    /// Throws unless a form can be sent here.
    func check(_ form: Form) throws(OAuthError) {
        var seen: Set<String> = []
        for parameter in form.parameters {
            let name = parameter.name, shown = ServerText.line(name)
            try Self.require(
                !name.isEmpty && !parameter.value.isEmpty, "the additional parameter '\(shown)' must have a name and a value")
            try Self.require(
                !ParameterNames.ofClient.contains(name), "the parameter '\(shown)' belongs to the client and can't be added")
            try Self.require(!namesInQuery.contains(name), "the \(self.name)'s query repeats a parameter of the form")
            try Self.require(
                seen.insert(name).inserted || ParameterNames.repeatable.contains(name), "the parameter '\(shown)' is repeated")
        }
    }

    /// Throws unless a loader can add the parameters to each of its forms.
    func check(additional form: Form) throws(OAuthError) {
        try check(form)
        for name in form.parameters.map(\.name) where ParameterNames.reserved.contains(name) {
            throw OAuthError(.invalidConfiguration("the parameter '\(name)' belongs to the loader and can't be added"))
        }
    }

    private static func require(_ condition: Bool, _ problem: @autoclosure () -> String) throws(OAuthError) {
        guard condition else { throw OAuthError(.invalidConfiguration(problem())) }
    }
}
