#if canImport(FoundationNetworking)
import Dispatch
import Foundation
import FoundationNetworking

/// A response that keeps Foundation busy for seconds on Linux, because Foundation copies all header lines again for each
/// line.
public enum LongHeader {
    /// 20,000 lines: they take 4 s, during which all sessions of the process wait (swift-corelibs-foundation#5016).
    public static let reply = LoopbackServer.Reply.bytes(
        "HTTP/1.1 200 OK\r\n" + String(repeating: "a:\r\n", count: 20_000) + "Content-Length: 0\r\n\r\n")

    /// Returns when Foundation has begun to read such a header: a call of any session then waits.
    public static func untilFoundationIsBusy() async {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                while true {
                    let isFree = DispatchSemaphore(value: 0)
                    Thread.detachNewThread {
                        URLSession(configuration: .ephemeral).invalidateAndCancel()
                        isFree.signal()
                    }
                    if isFree.wait(timeout: .now() + 0.1) == .timedOut { break }
                }
                continuation.resume()
            }
        }
    }

    /// Returns how long Foundation will still be busy with reading.
    public static func remainingTime() async -> Duration {
        await ContinuousClock().measure {
            await withCheckedContinuation { continuation in
                Thread.detachNewThread {
                    URLSession(configuration: .ephemeral).invalidateAndCancel()
                    continuation.resume()
                }
            }
        }
    }
}
#endif
