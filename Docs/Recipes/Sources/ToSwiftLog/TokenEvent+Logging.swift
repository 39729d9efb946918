import AccessTokens
import Logging

extension TokenEvent {
    var level: Logger.Level {
        // You: only an operator can mend the client's registration.
        if error?.remedy == .clientRegistration { return .critical }
        // The user, who signs in again: no fault of the program.
        if error?.remedy == .signIn { return .notice }
        return switch name {
        // Callers have no token, now or later.
        case .loadFailed, .storeFailed: .error
        // Callers are served, for now.
        case .refreshFailed, .invalidated: .warning
        case .reset, .replaced: .info  // a session begins or ends
        // Routine; `restored` comes with each token of another process.
        default: .debug
        }
    }

    var metadata: Logger.Metadata {
        var metadata: Logger.Metadata = ["generation": "\(generation)"]
        if let load {
            metadata["load"] = "\(load)"
            metadata["callers"] = "\(callers)"
        }
        if let error {
            metadata["error"] = "\(error.code)"
            metadata["remedy"] = "\(error.remedy)"
            metadata["description"] = "\(error)"
        }
        return metadata
    }
}

func log(_ tokens: TokenService, to logger: Logger) -> Task<Void, Never> {
    // Before the task, so that none is missed.
    let events = tokens.events()
    return Task {
        for await event in events {
            logger.log(
                level: event.level, "\(event.name)",
                metadata: event.metadata)
        }
    }
}
