import TokenServiceConcurrency

/// The requests of one loader that have not ended.
final class RunningRequests: Sendable {
    private struct Requests {
        var lastNumber = 0
        var running: [Int: StatefulRequest] = [:]
    }

    private let requests = Lock(Requests())

    var count: Int { requests.withLock { $0.running.count } }

    /// Adds a request, and returns the number with which to remove it.
    func add(_ request: StatefulRequest) -> Int {
        requests.withLock { requests in
            requests.lastNumber += 1
            requests.running[requests.lastNumber] = request
            return requests.lastNumber
        }
    }

    func remove(_ number: Int) {
        // The request may be released with its entry: after the lock, since releasing it runs foreign code.
        _ = requests.withLock { $0.running.removeValue(forKey: number) }
    }

    /// Cancels all running requests, in the order in which they began.
    func cancelAll() {
        let running = requests.withLock { $0.running }
        for (_, request) in running.sorted(by: { $0.key < $1.key }) { request.cancel() }
    }
}
