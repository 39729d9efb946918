import Interleavings
import RuntimeDoors
import TokenServiceConcurrency

/// The plain locks and conditions of one execution.
///
/// The real locks are taken and released. This object knows who holds them and lets threads wait. Locks are identified by their
/// addresses: the caller's stack keeps a lock alive as long as it is used.
final class DrivenLocks: Sendable {
    private struct State {
        /// The locks that tasks hold, by the engine's numbers; few, so that a dictionary would be slower.
        var holders: [(lock: UInt, task: Int)] = []
        /// In the order in which code used them first.
        var names: [UInt: Int] = [:]
        /// The threads that wait for a condition, in the order in which they came.
        var waiting: [UInt: [Signal]] = [:]
    }

    private let state = Lock(State())

    /// Takes a lock when it is free; returns `false` if the thread can't stop.
    func take(_ kind: doors_lock, _ lock: UnsafeMutableRawPointer, _ engine: any DrivenEngine) -> Bool {
        // The system is asked for a `Mutex` only if that is taken: by a stopped thread, or for a moment by one that isn't driven, such as
        // the explorer's own, which must add no point.
        func isDriven() -> Bool { kind != doors_lock_owned || engine.hasStopped(unsafe doors_owner(lock)) }
        guard let task = engine.runningTask, isDriven() else { return false }
        engine.stop()
        while unsafe !doors_try(kind, lock) {
            guard engine.canStop, isDriven() else { return false }
            unsafe engine.wait(for: FreeLock(self, kind, lock, title(of: "lock", lock)), nil)
        }
        // One whose memory has its owner is released without a call.
        if kind != doors_lock_owned { unsafe setHolder(of: lock, to: task) }
        return true
    }

    func note(_ lock: UnsafeMutableRawPointer, isTaken: Bool, _ engine: any DrivenEngine) {
        guard let task = engine.runningTask else { return }
        unsafe setHolder(of: lock, to: isTaken ? task : nil)
        // The code that follows may change something that others see, and may have no point itself.
        if !isTaken { engine.stop() }
    }

    func wait(
        _ condition: UnsafeMutableRawPointer, _ mutex: UnsafeMutableRawPointer, _ duration: Int64, _ engine: any DrivenEngine
    ) -> doors_wake {
        guard engine.canStop else { return doors_undriven }
        let key = UInt(bitPattern: condition)
        let signal = unsafe Signal(title(of: "condition", condition))
        state.withLock { $0.waiting[key, default: []].append(signal) }
        unsafe doors_free(doors_lock_mutex, mutex)
        unsafe setHolder(of: mutex, to: nil)
        engine.wait(for: signal, duration < 0 ? nil : .nanoseconds(duration))
        state.withLock { $0.waiting[key]?.removeAll { $0 === signal } }
        if unsafe !take(doors_lock_mutex, mutex, engine) { unsafe doors_take(mutex) }
        // Without a limit it may only be woken too early, as by any condition.
        return signal.isOpen || duration < 0 ? doors_signalled : doors_late
    }

    func signal(_ condition: UnsafeMutableRawPointer, isBroadcast: Bool, _ engine: any DrivenEngine) {
        engine.stop()
        let key = UInt(bitPattern: condition)
        let woken = state.withLock { state in
            let waiting = state.waiting[key] ?? []
            let woken = isBroadcast ? waiting[...] : waiting.prefix(1)
            state.waiting[key]?.removeFirst(woken.count)
            return woken
        }
        for signal in woken { signal.open() }
    }

    fileprivate func holder(of lock: UnsafeMutableRawPointer) -> Int? {
        state.withLock { $0.holders.first { $0.lock == UInt(bitPattern: lock) }?.task }
    }

    private func setHolder(of lock: UnsafeMutableRawPointer, to task: Int?) {
        let lock = UInt(bitPattern: lock)
        state.withLock { state in
            if let known = state.holders.firstIndex(where: { $0.lock == lock }) { state.holders.remove(at: known) }
            if let task { state.holders.append((lock, task)) }
        }
    }

    private func title(of kind: String, _ object: UnsafeMutableRawPointer) -> String {
        let number = state.withLock { state in
            let number = state.names[UInt(bitPattern: object)] ?? state.names.count + 1
            state.names[UInt(bitPattern: object)] = number
            return number
        }
        return "the \(kind) \(number)"
    }
}

/// Opens when a lock can be taken.
///
/// Safe: the thread that waits for the lock keeps it alive, and only asks the lock itself.
@safe private final class FreeLock: Gate, @unchecked Sendable {
    let title: String
    private let locks: DrivenLocks
    private let kind: doors_lock
    private let lock: UnsafeMutableRawPointer

    init(_ locks: DrivenLocks, _ kind: doors_lock, _ lock: UnsafeMutableRawPointer, _ title: String) {
        (self.locks, self.kind, self.title) = (locks, kind, title)
        unsafe self.lock = lock
    }

    var isOpen: Bool {
        guard unsafe doors_try(kind, lock) else { return false }
        unsafe doors_free(kind, lock)
        return true
    }

    var holder: Int? { unsafe locks.holder(of: lock) }
    var owner: Int32? { if kind == doors_lock_owned { unsafe doors_owner(lock) } else { nil } }
}

/// Opens when a thread that waits for a condition is woken.
private final class Signal: Gate {
    let title: String
    private let isSignalled = Lock(false)

    init(_ title: String) {
        self.title = title
    }

    var isOpen: Bool { isSignalled.withLock { $0 } }
    func open() { isSignalled.withLock { $0 = true } }
}

extension DrivenLocks {
    /// The callbacks of the doors for locks; the thread's session is the owner.
    static let callbacks = unsafe doors_lock_callbacks(
        stop: { owner in unsafe DrivenSession.at(owner).engine.stop() },
        settle: { owner in unsafe DrivenSession.at(owner).engine.stopForSleepers() },
        take: { owner, kind, lock in
            let session = unsafe DrivenSession.at(owner)
            return unsafe session.locks.take(kind, lock, session.engine)
        },
        note: { owner, lock, isTaken in
            let session = unsafe DrivenSession.at(owner)
            unsafe session.locks.note(lock, isTaken: isTaken, session.engine)
        },
        wait: { owner, condition, mutex, duration in
            let session = unsafe DrivenSession.at(owner)
            return unsafe session.locks.wait(condition, mutex, duration, session.engine)
        },
        signal: { owner, condition, isBroadcast in
            let session = unsafe DrivenSession.at(owner)
            unsafe session.locks.signal(condition, isBroadcast: isBroadcast, session.engine)
        })
}
