import TokenServiceConcurrency
import AccessTokensHTTP

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Calls the members of one cluster: chooses the endpoint, authenticates, and decides what may be sent again.
final class EtcdClient: Sendable {
    private struct State {
        /// The endpoint to begin with: the last one that answered.
        var first = 0
        /// The authentication token.
        var token: String?
    }

    private let endpoints: [URL]
    private let user: EtcdUser?
    private let transport: any TokenTransport
    private let state = Lock(State())

    init(endpoints: [URL], user: EtcdUser?, transport: any TokenTransport) {
        self.endpoints = endpoints
        self.user = user
        self.transport = transport
    }

    /// Makes a call at one endpoint after another until one answers.
    ///
    /// The next endpoint is asked only if nothing can have been written: after any failure of a read, and for a write if it was
    /// not sent. Later calls ask a failed endpoint last, even if this call ends with the failure.
    ///
    /// - Parameters:
    ///   - limit: How long each request may take.
    ///   - attempts: How many endpoints to ask at most; all of them by default.
    func perform<Value>(_ call: EtcdCall<Value>, within limit: Duration, attempts: Int = .max) async throws -> Value {
        let first = state.withLock { $0.first }
        var failure = EtcdError(.invalidConfiguration, "it has no endpoints")
        for index in endpoints.indices.prefix(attempts).map({ ($0 + first) % endpoints.count }) {
            do {
                return try await perform(call, at: endpoints[index], within: limit)
            } catch let error as EtcdError {
                failure = error
                failure.endpoint = Origin(endpoints[index])?.description
                guard error.isOfOneEndpoint else { throw failure }
                state.withLock { if $0.first == index { $0.first = (index + 1) % endpoints.count } }
                if error.isOutcomeUnknown { throw failure }
            }
        }
        throw failure
    }

    /// Makes a call at one endpoint, and once more if the first attempt was refused because of its token.
    private func perform<Value>(_ call: EtcdCall<Value>, at endpoint: URL, within limit: Duration) async throws -> Value {
        let token = try await currentToken(at: endpoint, within: limit)
        switch try await exchange(call, token: token, at: endpoint, within: limit) {
        case .value(let value): return value
        case .needsToken(let error):
            guard let token else { throw error }
            // Another call may have renewed it meanwhile.
            state.withLock { if $0.token == token { $0.token = nil } }
            let renewed = try await currentToken(at: endpoint, within: limit)
            switch try await exchange(call, token: renewed, at: endpoint, within: limit) {
            case .value(let value): return value
            case .needsToken(let error): throw error
            }
        }
    }

    /// Returns the cached token, or else fetches one; `nil` without a user.
    private func currentToken(at endpoint: URL, within limit: Duration) async throws -> String? {
        guard let user else { return nil }
        if let token = state.withLock({ $0.token }) { return token }
        let failure: EtcdError
        do {
            switch try await exchange(.authenticate(user), token: nil, at: endpoint, within: limit) {
            case .value(let token):
                state.withLock { $0.token = token }
                return token
            case .needsToken(let error): failure = error
            }
        } catch let error as EtcdError where error.code == .refused {
            failure = error
        }
        throw EtcdError(.authenticationFailed, failure.detail, status: failure.status)
    }

    private enum Outcome<Value> {
        case value(Value)
        case needsToken(EtcdError)
    }

    /// Sends a call once.
    private func exchange<Value>(
        _ call: EtcdCall<Value>, token: String?, at endpoint: URL, within limit: Duration
    ) async throws -> Outcome<Value> {
        let headers = ["Content-Type": "application/json", "Accept": "application/json"]
        let request = TransportRequest(
            url: endpoint.appending(path: call.path), headers: headers.merging(token.map { ["Authorization": $0] } ?? [:]) { $1 },
            body: call.body, timeLimit: limit, maximumBodySize: EtcdAnswer.maximumSize)
        do {
            let response = try await send(request, hiding: secrets(token))
            if response.status == 200 { return .value(try call.read(response.body)) }
            let (error, needsToken) = EtcdAnswer.refusal(in: response, hiding: secrets(token))
            if needsToken { return .needsToken(error) }
            throw error
        } catch var error as EtcdError {
            let isUnknown = error.isOutcomeUnknown || [.connectionLost, .timedOut, .unreadableAnswer].contains(error.code)
            error.isOutcomeUnknown = call.mayWrite && isUnknown
            throw error
        }
    }

    private func send(_ request: TransportRequest, hiding secrets: [String]) async throws -> TransportResponse {
        do {
            return try await transport.answer(to: request, hiding: secrets)
        } catch let error as TransportError {
            throw EtcdError(error, of: request)
        }
    }

    private func secrets(_ token: String?) -> [String] { [token, user?.password].compactMap { $0 }.filter { !$0.isEmpty } }
}
