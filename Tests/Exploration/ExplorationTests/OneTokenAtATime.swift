import AccessTokens
import Interleavings

/// The answers of a token service whose callers come one after another.
///
/// Tokens are numbered in the order in which their loads begin, replacements from -1 downwards.
struct OneTokenAtATime: SequentialSpecification {
    struct State: Hashable, Sendable {
        var cached: Int?
        /// Loads up to this one provide no further token: this one's has been handed out, or there was a fence.
        var lastLoad = 0
        var rejected: Set<Int> = []
        /// Whether the last operation was a sign-out, which waiting callers are told.
        var isJustReset = false
    }

    enum Operation: Sendable, Hashable {
        /// The loads up to `expired` began so long ago that their tokens have expired.
        case retrieve(expired: Int)
        case invalidate(Int)
        case replace(with: Int, loadsBefore: Int)
        case reset(loadsBefore: Int)
    }

    enum Outcome: Sendable, Hashable {
        /// A token; the loads up to `expired` may have been too old when it was picked.
        case token(Int, expired: Int)
        case failure(expired: Int)
        case reset
        case cancelled
        case done

        /// Performs a retrieval and returns its outcome.
        ///
        /// - Parameter expired: Called when it has ended.
        static func retrieving(
            _ token: inout AccessToken?, expired: () -> Int, _ retrieve: () async throws -> AccessToken
        ) async -> Outcome {
            do {
                let answer = try await retrieve()
                token = answer
                return .token(Int(answer.value) ?? 0, expired: expired())
            } catch is CancellationError {
                return .cancelled
            } catch let error as TokenServiceError where error.code == .reset {
                return .reset
            } catch {
                return .failure(expired: expired())
            }
        }
    }

    let initialState = State()

    func states(after operation: Operation, returning outcome: Outcome?, in state: State) -> [State] {
        switch operation {
        case .retrieve(let expired): outcome.map { states(retrieving: $0, notUpTo: expired, in: state) } ?? [state]
        case .invalidate(let token): [invalidated(state, token)]
        case .replace(let token, let loads): [fenced(state, loads, cached: token)]
        case .reset(let loads): [fenced(state, loads, cached: nil)]
        }
    }

    private func states(retrieving outcome: Outcome, notUpTo dead: Int, in state: State) -> [State] {
        switch outcome {
        case .token(let token, let expired):
            if token > 0, token <= dead { return [] }
            if state.cached == token { return [state] }
            // A valid token is not replaced unless a caller asks for that.
            guard isEmpty(state, expired), token > state.lastLoad, !state.rejected.contains(token) else { return [] }
            return [State(cached: token, lastLoad: token, rejected: state.rejected)]
        // No caller gets an error while there is a token.
        case .failure(let expired): return isEmpty(state, expired) ? [state] : []
        case .reset: return state.isJustReset ? [state] : []
        case .cancelled: return [state]
        case .done: return []
        }
    }

    private func fenced(_ state: State, _ loads: Int, cached: Int?) -> State {
        State(cached: cached, lastLoad: max(state.lastLoad, loads), rejected: [], isJustReset: cached == nil)
    }

    private func invalidated(_ state: State, _ token: Int) -> State {
        State(
            cached: state.cached == token ? nil : state.cached, lastLoad: state.lastLoad,
            rejected: state.rejected.union([token]))
    }

    /// Whether there is no token, or one that may have expired.
    private func isEmpty(_ state: State, _ expired: Int) -> Bool {
        state.cached.map { $0 > 0 && $0 <= expired } ?? true
    }
}
