import Foundation
import TokenServiceHTTP

extension Message {
    /// As many redirects as browsers and `URLSession` follow.
    static let maximumRedirects = 20

    /// The message that a redirect asks for; `nil` if the answer is none.
    ///
    /// We follow redirects ourselves: the session of Linux would take the token along to any server, and would send a
    /// redirected `POST` without its body.
    ///
    /// Another origin gets neither the body nor a header that may be a secret: where a redirect leads is the server's wish.
    ///
    /// - Throws: ``DataLoadingError`` with the code `redirectRefused`.
    ///
    /// Source: RFC 9110 §15.4; RFC 9700 §4.12.
    func redirected(by response: Response) throws(DataLoadingError) -> Message? {
        guard [301, 302, 303, 307, 308].contains(response.status), let location = response.header("Location") else { return nil }
        func refuse(_ reason: String) -> DataLoadingError {
            DataLoadingError(.redirectRefused, detail: reason, response: response)
        }
        guard let target = URL(string: location, relativeTo: url)?.absoluteURL, let origin = Origin(target) else {
            throw refuse("it does not lead to an http or https URL with a host and without user and password")
        }
        guard self.origin.scheme != "https" || origin.scheme == "https" else { throw refuse("it leads away from https") }

        var next = self
        next.url = target
        next.origin = origin
        if (response.status == 303 && method != .head) || ([301, 302].contains(response.status) && method == .post) {
            next.method = .get
            next.body = nil
            next.removeHeaders { $0.hasPrefix("content-") }
        }
        guard next.body?.isReplayable != false else { throw refuse("the body can't be sent again") }
        if origin != self.origin {
            guard next.body == nil else {
                // Not which: the server may write a secret into the host's name. The answer has it.
                throw refuse("the body would go to another origin: send it there yourself if that may have it (see the Location)")
            }
            next.hasLeftOrigin = true
            next.removeHeaders { !Self.harmlessHeaders.contains($0) }
        }
        return next
    }

    /// The headers that follow to another origin, in lower case: any other one may be a secret of the first, such as `X-Api-Key`.
    private static let harmlessHeaders: Set<String> = [
        "accept", "accept-charset", "accept-encoding", "accept-language", "cache-control", "pragma", "range", "user-agent",
    ]

    /// Removes headers by their names in lower case.
    private mutating func removeHeaders(where condition: (String) -> Bool) {
        headers = headers.filter { !condition($0.key.lowercased()) }
    }
}
