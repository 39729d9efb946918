/// A server that takes a second to answer, and counts its requests.
package actor PriceServer {
    package private(set) var fetches = 0

    package init() {}

    func fetch() async -> Int {
        fetches += 1
        try? await Task.sleep(for: .seconds(1))
        return 42
    }
}

/// Should fetch a price once for all callers, but has a bug: while one awaits the answer, the actor lets the next one in.
package actor PriceCache {
    private let server: PriceServer
    private var price: Int?

    package init(_ server: PriceServer) {
        self.server = server
    }

    package func price() async -> Int {
        if let price { return price }
        let fetched = await server.fetch()
        price = fetched
        return fetched
    }
}

/// Fetches a price once for all callers.
package actor SharedPriceCache {
    private let server: PriceServer
    private var fetch: Task<Int, Never>?

    package init(_ server: PriceServer) {
        self.server = server
    }

    package func price() async -> Int {
        if let fetch { return await fetch.value }
        let fetch = Task { await server.fetch() }
        self.fetch = fetch
        return await fetch.value
    }
}
