import DataLoading
import Foundation

nonisolated extension Request {
    /// The second article's parameters, in the order of their names.
    init(url: URL, parameters: [String: String]) {
        self.init(url: url, query: parameters.sorted(by: <).map { URLQueryItem(name: $0.key, value: $0.value) })
    }

    var parameters: [String: String] {
        Dictionary(query.map { ($0.name, $0.value ?? "") }) { $1 }
    }
}

/// The second article's loader, for screens: handlers run on the main actor.
@MainActor final class DataLoader {
    private nonisolated static let withoutTokens = DataLoaderFactory()
    private let loader: DataLoading.DataLoader

    init(factory: DataLoaderFactory = withoutTokens) {
        loader = factory.makeLoader(queue: .main)
    }

    @discardableResult
    func perform(_ request: Request, then handler: @escaping @MainActor (Result<Response>) -> Void) -> StatefulRequest {
        loader.perform(request) { result in
            // On the main queue, as the loader was made.
            MainActor.assumeIsolated { handler(Result(result)) }
        }
    }

    /// The loader's release does the same.
    nonisolated func cancelAllRequests() {
        loader.cancelAll()
    }
}
