#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Which thread this is: for telling the engine's own from any other.
struct ThreadIdentity: Sendable, Equatable {
    private let number: UInt

    static var current: ThreadIdentity {
        #if canImport(Darwin)
        unsafe ThreadIdentity(number: UInt(bitPattern: pthread_self()))
        #else
        ThreadIdentity(number: UInt(pthread_self()))
        #endif
    }
}
