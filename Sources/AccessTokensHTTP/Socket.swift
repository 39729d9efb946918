#if URLSession && canImport(FoundationNetworking)
import Foundation

#if canImport(Musl)
import Musl
#else
import Glibc
#endif

/// The few system calls of a ``PlainExchange``; all but ``wake(_:)`` and ``end(_:)`` may wait.
enum Socket {
    /// Where to connect to.
    struct Address {
        let family: Int32
        let bytes: [UInt8]
    }

    #if canImport(Musl)
    private static let stream = SOCK_STREAM
    #else
    private static let stream = Int32(SOCK_STREAM.rawValue)
    #endif

    /// Looks up the addresses of a host; no time limit interrupts the lookup.
    static func addresses(of host: String, port: Int) throws(TransportError) -> [Address] {
        var hints = unsafe addrinfo()
        unsafe hints.ai_socktype = stream
        var list: UnsafeMutablePointer<addrinfo>?
        let status = unsafe getaddrinfo(host, "\(port)", &hints, &list)
        defer { if let list = unsafe list { unsafe freeaddrinfo(list) } }
        guard status == 0 else {
            let text = unsafe String(cString: gai_strerror(status))
            throw .notSent(text)
        }
        var addresses: [Address] = []
        var next = unsafe list
        while let entry = unsafe next {
            if let address = unsafe entry.pointee.ai_addr {
                let bytes = unsafe [UInt8](UnsafeRawBufferPointer(start: address, count: Int(entry.pointee.ai_addrlen)))
                addresses.append(Address(family: unsafe entry.pointee.ai_family, bytes: bytes))
            }
            unsafe next = entry.pointee.ai_next
        }
        return addresses
    }

    static func open(_ address: Address) throws(TransportError) -> Int32 {
        let descriptor = socket(address.family, stream | Int32(O_CLOEXEC), 0)
        guard descriptor >= 0 else { throw .notSent(text(of: errno)) }
        return descriptor
    }

    /// Connects; returns the problem, or `nil`.
    static func connect(_ descriptor: Int32, to address: Address) -> String? {
        let status = unsafe address.bytes.withUnsafeBytes { bytes in
            unsafe bytes.withMemoryRebound(to: sockaddr.self) { address in
                guard let start = address.baseAddress else { return Int32(-1) }
                #if canImport(Musl)
                return unsafe Musl.connect(descriptor, start, socklen_t(bytes.count))
                #else
                return unsafe Glibc.connect(descriptor, start, socklen_t(bytes.count))
                #endif
            }
        }
        return status == 0 ? nil : text(of: errno)
    }

    static func send(_ message: Data, to descriptor: Int32) throws(TransportError) {
        var rest = [UInt8](message)[...]
        while !rest.isEmpty {
            let count = unsafe rest.withUnsafeBytes { bytes in
                #if canImport(Musl)
                unsafe Musl.send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
                #else
                unsafe Glibc.send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
                #endif
            }
            if count < 0, errno == EINTR { continue }
            // A server may refuse a request and close before reading all of it; the answer can still be received.
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }

    /// Receives what has arrived; `nil`: the server has ended the connection.
    static func receive(from descriptor: Int32) throws(TransportError) -> Data? {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = unsafe recv(descriptor, &buffer, buffer.count, 0)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw .connectionLost(text(of: errno)) }
            return count == 0 ? nil : Data(buffer[..<count])
        }
    }

    /// Makes calls that are blocked on the descriptor return.
    static func wake(_ descriptor: Int32) { _ = shutdown(descriptor, Int32(SHUT_RDWR)) }

    static func end(_ descriptor: Int32) { _ = close(descriptor) }

    private static func text(of number: Int32) -> String { unsafe String(cString: strerror(number)) }
}
#endif
