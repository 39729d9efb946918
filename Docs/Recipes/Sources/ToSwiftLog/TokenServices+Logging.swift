import AccessTokens
import AccessTokensKeys
import Logging

func log<Key>(
    _ services: TokenServices<Key>, to logger: Logger,
    naming name: @escaping @Sendable (Key) -> Logger.MetadataValue
) -> Task<Void, Never> {
    let events = services.events()
    return Task {
        for await event in events {
            var metadata = event.event.metadata
            metadata["key"] = name(event.key)
            logger.log(
                level: event.event.level, "\(event.event.name)",
                metadata: metadata)
        }
    }
}
