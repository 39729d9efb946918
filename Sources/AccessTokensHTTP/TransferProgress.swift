/// How much of a request was sent, and of its answer received, in bytes.
package struct TransferProgress: Sendable {
    package internal(set) var bytesSent: Int64 = 0
    /// The length of the request's body; `nil` if it is unknown, or there is none.
    package internal(set) var bytesToSend: Int64?
    package internal(set) var bytesReceived: Int64 = 0
    /// The length of the answer's body as the server announced it; `nil` if it didn't, or sends none.
    package internal(set) var bytesToReceive: Int64?
}
