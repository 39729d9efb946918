import Dispatch

extension Engine {
    /// Waits for what may come back from outside, in real time, for telling an escape from a deadlock.
    ///
    /// As long as it takes somebody else outside to get up a few times, since a loaded machine is slow: half a second on one
    /// that isn't.
    func hearsFromOutside() -> Bool {
        let patience = DispatchSemaphore(value: 0)
        Task.detached {
            for _ in 1...5 { try? await ContinuousClock().sleep(for: .milliseconds(100)) }
            patience.signal()
        }
        // Other tests may keep the pool busy for minutes, under a sanitizer.
        let end = DispatchTime.now() + .seconds(600)
        while patience.wait(timeout: .now()) == .timedOut, .now() < end {
            if outside.wait(timeout: .now() + .milliseconds(20)) == .success { return true }
        }
        return outside.wait(timeout: .now()) == .success
    }
}
