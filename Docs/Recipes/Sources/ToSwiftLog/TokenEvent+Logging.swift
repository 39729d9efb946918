import AccessTokens
import Logging

extension TokenEvent {
    var level: Logger.Level {
        // You: only an operator can mend the client's registration.
        if error?.remedy == .clientRegistration { return .critical }
        // The user, who signs in again: no fault of the program.
        if error?.remedy == .signIn { return .notice }
        return switch name {
        case .loadFailed, .storeFailed: .error  // callers have no token, now or later
        case .refreshFailed, .invalidated: .warning  // callers are served, for now
        case .reset, .replaced, .restored: .info  // a session begins or ends
        default: .debug  // routine
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
    let events = tokens.events()  // before the task, so that none is missed
    return Task {
        for await event in events {
            logger.log(
                level: event.level, "\(event.name)", metadata: event.metadata)
        }
    }
}
