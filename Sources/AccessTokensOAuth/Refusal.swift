import AccessTokens

/// An authorization server's refusal: the only place where codes of servers are known, and where their meaning is decided.
package struct Refusal {
    /// What a server sent as the body of a refusal.
    package enum Body {
        /// A JSON object, so the server itself has answered, or at least something that knows its protocol.
        case object
        case empty
        /// A page, a text, or something else that no token endpoint sends.
        case foreign
    }

    /// The server's code, made safe to print.
    let code: String?
    /// The server's own explanation, as it was sent.
    let description: String?
    let status: Int
    let body: Body

    /// Returns how to recover.
    ///
    /// | refusal | a user's grant | the program's own |
    /// |---|---|---|
    /// | a code that only a user can act on, at any status | `signIn` | `clientRegistration` |
    /// | 408, 429, 5xx; a code or description of trouble that passes | `retry` | `retry` |
    /// | 403 without JSON | `retry` | `retry`; if it is empty, `clientRegistration` |
    /// | a code by which the grant is refused | `signIn` | `clientRegistration` |
    /// | a code by which the client is refused | `clientRegistration` | `clientRegistration` |
    /// | no code or any other: 2xx, 400, 401, 403 | `signInOrRegistration` | 401, 403: `clientRegistration`, else `retry` |
    /// | any other code and status | `retry` | `retry` |
    ///
    /// “A user's grant” is one whose ``Grant/remedyWhenRefused`` is `signIn`. A gateway's status takes precedence over the code: a
    /// bad gateway must not end a session. Nor must a firewall's or a captive portal's page. A 401 or an empty 403 without a
    /// known code is about the client, whose credentials each request carries: some servers refuse a wrong secret that way.
    func remedy(of grant: Grant?) -> TokenServiceError.Remedy {
        let meaning = meaning(for: grant), isUsers = grant?.remedyWhenRefused == .signIn
        if meaning == .userNeeded { return grant?.remedyWhenRefused ?? .signIn }
        if isPassing(for: grant) { return .retry }
        switch meaning {
        case .grantRefused: return grant?.remedyWhenRefused ?? .clientRegistration
        case .clientRefused: return .clientRegistration
        case .proofRefused: return .programChange
        default: break
        }
        let mayBeGrant = (200..<300).contains(status) || [400, 401, 403].contains(status)
        if isUsers, mayBeGrant { return .signInOrRegistration }
        return meaning == .unclear || status == 401 || status == 403 ? .clientRegistration : .retry
    }

    /// Whether the server, or something before it, is in trouble, so that waiting helps.
    func isPassing(for grant: Grant?) -> Bool {
        if meaning(for: grant) == .passing || status == 408 || status == 429 || status >= 500 { return true }
        if let words = description?.lowercased(), Self.passingWords.contains(where: words.contains) { return true }
        return isForeign(for: grant)
    }

    /// Whether something before the server has answered, such as a firewall.
    func isForeign(for grant: Grant?) -> Bool {
        status == 403 && (body == .foreign || body == .empty && grant?.remedyWhenRefused == .signIn)
    }

    /// Returns how to recover when an authorization request was refused with this code.
    ///
    /// Most codes mean a mistake of the program or its registration, which no sign-in can mend. A program that begins another one
    /// unasked would keep opening the browser.
    ///
    /// Source: RFC 6749 §4.1.2.1; OpenID Connect Core §3.1.2.6.
    static func remedyOfSignIn(_ code: String?) -> TokenServiceError.Remedy {
        guard let code else { return .signInOrRegistration }
        // LinkedIn and Apple: `user_cancelled_authorize`.
        if code == "access_denied" || code == "account_selection_required" || code.hasPrefix("user_") { return .signIn }
        if mistakesInSignIns.contains(code) { return .clientRegistration }
        return switch codes[code]?.meaning {
        case .passing: .retry
        case .grantRefused, .userNeeded: .signIn
        case .clientRefused, .proofRefused: .clientRegistration
        case .unclear, nil: .signInOrRegistration
        }
    }

    private static let mistakesInSignIns: Set<String> = [
        "invalid_request", "unsupported_response_type", "invalid_request_uri", "invalid_request_object", "request_not_supported",
        "request_uri_not_supported", "registration_not_supported", "invalid_redirect_uri",
    ]

    private func meaning(for grant: Grant?) -> Code.Meaning? {
        // RFC 8693 §2.2.2: so a server must refuse a subject token that has ended. The other code is Keycloak's.
        if code == "invalid_request" || code == "token_expired", grant?.type == Grant.exchangeType { return .grantRefused }
        guard let known = code.flatMap({ Self.codes[$0] }), known.type == nil || known.type == grant?.type else { return nil }
        return known.meaning
    }
}

extension Refusal {
    /// A code that some servers send.
    package struct Code: Sendable {
        package enum Meaning: Sendable {
            /// Trouble of the server that passes, or its wish for a pause.
            case passing
            /// The grant is no longer valid.
            case grantRefused
            /// The user must do something first, whatever the status.
            case userNeeded
            case clientRefused
            case proofRefused
            /// Some servers mean the grant and others the request.
            case unclear
        }

        let meaning: Meaning
        /// The only type of grant that it has this meaning for; `nil`: any.
        let type: String?

        fileprivate init(_ meaning: Meaning, ofType type: String? = nil) {
            self.meaning = meaning
            self.type = type
        }
    }

    /// Sources: the table in `Docs/Decisions/OAuth.md`, which has a row for each.
    package static let codes: [String: Code] = [
        "invalid_grant": Code(.grantRefused), "interaction_required": Code(.grantRefused),
        "login_required": Code(.grantRefused), "consent_required": Code(.grantRefused), "bad_token": Code(.grantRefused),
        "bad_refresh_token": Code(.grantRefused), "invalid_refresh_token": Code(.grantRefused),
        "invalid_code": Code(.grantRefused),
        "access_denied": Code(.grantRefused, ofType: Grant.deviceType),
        "expired_token": Code(.grantRefused, ofType: Grant.deviceType),
        "token_expired": Code(.grantRefused, ofType: Grant.deviceType),

        "mfa_required": Code(.userNeeded), "authorization_declined": Code(.userNeeded),
        "bad_verification_code": Code(.userNeeded), "incorrect_device_code": Code(.userNeeded),
        "not_linked": Code(.userNeeded, ofType: Grant.exchangeType),

        "temporarily_unavailable": Code(.passing), "server_error": Code(.passing), "slow_down": Code(.passing),
        "authorization_pending": Code(.passing), "ratelimited": Code(.passing), "rate_limited": Code(.passing),
        "internal_error": Code(.passing), "fatal_error": Code(.passing), "service_unavailable": Code(.passing),
        "request_timeout": Code(.passing), "team_added_to_org": Code(.passing), "use_dpop_nonce": Code(.passing),

        "invalid_client": Code(.clientRefused), "unauthorized_client": Code(.clientRefused),
        "unsupported_grant_type": Code(.clientRefused), "invalid_scope": Code(.clientRefused),
        "invalid_target": Code(.clientRefused), "unsupported_token_type": Code(.clientRefused),
        "incorrect_client_credentials": Code(.clientRefused), "redirect_uri_mismatch": Code(.clientRefused),
        "device_flow_disabled": Code(.clientRefused), "bad_client_secret": Code(.clientRefused),
        "invalid_client_id": Code(.clientRefused), "invalid_resource": Code(.clientRefused),
        "invalid_redirect_uri": Code(.clientRefused), "invalid_client_metadata": Code(.clientRefused),
        "invalid_software_statement": Code(.clientRefused), "unapproved_software_statement": Code(.clientRefused),

        "invalid_dpop_proof": Code(.proofRefused), "invalid_request": Code(.unclear),
    ]

    /// Those with which a server refuses a client that it doesn't know, or not by this secret.
    static let codesOfClients: Set<String> = [
        "invalid_client", "unauthorized_client", "incorrect_client_credentials", "bad_client_secret", "invalid_client_id",
    ]

    /// Parts of descriptions, in lower case, by which a server says that waiting helps, although its code means something else.
    static let passingWords = [wordsUnderWay, "rate limit exceeded"]

    /// The part of a description by which Salesforce says that it is processing another request with the same grant.
    static let wordsUnderWay = "token request is already being processed"
}
