#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A value of the current thread, whatever queue or task it works for.
///
/// Safe because the value is set only while `with` runs, which retains it.
@safe struct ThreadValue<Value: AnyObject>: Sendable {
    private let key: pthread_key_t

    init() {
        var key = pthread_key_t()
        unsafe pthread_key_create(&key, nil)
        self.key = key
    }

    var value: Value? {
        unsafe pthread_getspecific(key).map { unsafe Unmanaged<Value>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Runs `body` while the thread has the value.
    func with(_ value: Value, _ body: () -> Void) {
        unsafe pthread_setspecific(key, Unmanaged.passUnretained(value).toOpaque())
        defer { pthread_setspecific(key, nil) }
        withExtendedLifetime(value, body)
    }
}
