import Foundation
import AccessTokensHTTP

extension Message {
    /// The limit on redirects, as in browsers and in `URLSession`.
    static let maximumRedirects = 20

    /// Returns the message that a redirect asks for; `nil` if the response isn't a redirect.
    ///
    /// We follow redirects ourselves: on Linux, `URLSession` would send the token to any server, and would send a redirected
    /// `POST` without its body.
    ///
    /// Another origin gets neither the body nor a header that may be a secret: the server chooses where a redirect leads.
    ///
    /// - Throws: ``DataLoadingError`` with the code `redirectRefused`.
    ///
    /// Source: RFC 9110 §15.4; RFC 9700 §4.12.
    func redirected(by response: Response) throws(DataLoadingError) -> Message? {
        guard [301, 302, 303, 307, 308].contains(response.status), let location = response.header("Location") else { return nil }
        func refuse(_ reason: String) -> DataLoadingError {
            DataLoadingError(.redirectRefused, detail: reason, response: response)
        }
        guard let target = URL(string: location, relativeTo: url)?.normalized, let origin = Origin(target) else {
            throw refuse("it does not lead to an http or https URL with a host and without user and password")
        }
        guard self.origin.scheme != "https" || origin.scheme == "https" else { throw refuse("it leads away from https") }

        var next = self
        next.url = target
        next.origin = origin
        if (response.status == 303 && method != "HEAD") || ([301, 302].contains(response.status) && method == "POST") {
            next.method = "GET"
            next.body = nil
            next.removeHeaders { $0.hasPrefix("content-") }
        }
        guard next.body?.isReplayable != false else { throw refuse("the body can't be sent again") }
        if origin != self.origin {
            guard next.body == nil else {
                // Don't name the origin: the server may put a secret into the host's name. The response contains the URL.
                throw refuse(
                    "the body would go to another origin: if that origin may receive it, send it there yourself (see Location)")
            }
            next.hasLeftOrigin = true
            next.removeHeaders { !Self.harmlessHeaders.contains($0) }
        }
        return next
    }

    /// The headers that may go to another origin, in lower case; any other may be a secret of the first origin, such as
    /// `X-Api-Key`.
    static let harmlessHeaders: Set<String> = [
        "accept", "accept-charset", "accept-encoding", "accept-language", "cache-control", "pragma", "range", "user-agent",
    ]

    /// Removes headers by their names in lower case.
    private mutating func removeHeaders(where condition: (String) -> Bool) {
        headers = headers.filter { !condition($0.key.lowercased()) }
    }
}
