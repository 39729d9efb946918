import Interleavings
import RuntimeDoors
import TokenServiceConcurrency

/// The queues of one execution, and the objects that its code waits for.
///
/// Dispatch's own objects keep the counts. This object knows what follows when a count changes: a block begins, or a thread
/// continues.
///
/// Objects are identified by their addresses. A queue is retained, so that its address isn't reused. Work items aren't: each is
/// registered again when the execution creates it.
final class DrivenQueues: Sendable {
    /// An address; safe because it is used only while its object is alive: retained by the caller, by a waiting thread's stack,
    /// or here.
    @safe struct Object: Hashable, @unchecked Sendable {
        let pointer: UnsafeMutableRawPointer

        init(_ pointer: UnsafeMutableRawPointer) {
            unsafe self.pointer = pointer
        }

        static func == (one: Object, other: Object) -> Bool { unsafe one.pointer == other.pointer }

        func hash(into hasher: inout Hasher) { unsafe hasher.combine(pointer) }
    }

    private struct Queue {
        let lane: Int
        let kind: doors_queue

        var isSerial: Bool { kind == doors_queue_serial || kind == doors_queue_main }

        /// A global queue has no barriers.
        func takes(asBarrier isBarrier: Bool) -> Bool { isSerial || (isBarrier && kind != doors_queue_global) }
    }

    private struct Item {
        let isBarrier: Bool
        var hasEnded = false
    }

    /// A block that begins when a group is empty or a work item has ended.
    private struct Notification {
        let queue: Object
        let work: QueuedWork
    }

    private struct State {
        var queues: [Object: Queue] = [:]
        var targets: [Object: Object] = [:]
        var items: [Object: Item] = [:]
        var notifications: [Object: [Notification]] = [:]
        /// The values of the semaphores and groups that were made in the execution, as far as it changed them.
        var counts: [Object: Int] = [:]
        /// The groups that a block has waited for.
        var groups: Set<Object> = []
        /// Semaphores and groups, in the order in which code waited for them.
        var names: [Object: String] = [:]
    }

    private let state = Lock(State())

    deinit {
        let kept = state.withLock { state in
            let waiting = state.notifications.values.joined().map(\.queue)
            return Array(state.queues.keys) + state.targets.keys + state.targets.values + state.groups + waiting
        }
        for object in kept { unsafe doors_release(object.pointer) }
    }

    func enqueue(_ work: QueuedWork, in object: Object, isBarrier: Bool, after delay: Int64, _ session: DrivenSession) {
        guard let queue = queue(object, session) else { return }
        let isBarrier = queue.takes(asBarrier: isBarrier || isBarrierItem(work, session))
        session.engine.enqueue(
            { work.run(in: object, isBarrier: isBarrier) }, lane: queue.lane, isBarrier: isBarrier, after: .nanoseconds(delay),
            in: session)
    }

    /// - Parameter body: Its argument: whether the thread must enter the queue as a barrier.
    func sync(in object: Object, isBarrier: Bool, _ session: DrivenSession, _ body: (Bool) -> Void) {
        guard let queue = queue(object, session) else { return body(isBarrier) }
        let isBarrier = queue.takes(asBarrier: isBarrier)
        session.engine.inTurn(lane: queue.lane, isBarrier: isBarrier) { body(isBarrier) }
    }

    func notify(_ work: QueuedWork, in queue: Object, after kind: doors_wait, of object: Object, _ session: DrivenSession) {
        expectKnown(kind, object, session)
        let isOver = state.withLock { state in
            if Self.isOver(kind, object, state) { return true }
            // Kept for the whole execution.
            if kind == doors_wait_group, state.groups.insert(object).inserted { unsafe doors_retain(object.pointer) }
            state.notifications[object, default: []].append(Notification(queue: queue, work: work))
            unsafe doors_retain(queue.pointer)
            return false
        }
        if isOver, kind == doors_wait_group { expectHome(kind, object, session) }
        if isOver { enqueue(work, in: queue, isBarrier: false, after: 0, session) }
    }

    /// Begins the blocks that waited for a group or an item.
    func change(_ kind: doors_wait, of object: Object, _ session: DrivenSession) {
        let due = state.withLock { state in
            if kind == doors_wait_item { state.items[object]?.hasEnded = true }
            state.counts[object]? += kind == doors_wait_semaphore ? 1 : -1
            guard Self.isOver(kind, object, state) else { return [Notification]() }
            defer { state.notifications[object]?.removeAll() }
            return state.notifications[object] ?? []
        }
        for notification in due {
            enqueue(notification.work, in: notification.queue, isBarrier: false, after: 0, session)
            unsafe doors_release(notification.queue.pointer)
        }
    }

    /// - Returns: `false` if the time ran out first.
    func wait(for kind: doors_wait, of object: Object, _ duration: Int64, _ session: DrivenSession) -> Bool {
        expectKnown(kind, object, session)
        let limit: Duration? = duration < 0 ? nil : .nanoseconds(duration)
        repeat {
            // A wait with a zero limit only polls.
            if limit == .zero {
                session.engine.stop()
            } else {
                session.engine.wait(for: ObjectGate(self, kind, object, title(of: kind, object)), limit)
            }
            if pass(kind, object, session) { return true }
            // Otherwise an outside thread was faster.
        } while limit == nil && session.engine.canStop
        return limit == nil
    }

    func isOver(_ kind: doors_wait, _ object: Object) -> Bool { state.withLock { Self.isOver(kind, object, $0) } }

    private func pass(_ kind: doors_wait, _ object: Object, _ session: DrivenSession) -> Bool {
        if kind == doors_wait_item { return isOver(kind, object) }
        guard unsafe doors_pass(kind, object.pointer) else { return false }
        expectHome(kind, object, session)
        return true
    }

    func count(_ object: Object, _ change: Int, isNew: Bool) {
        state.withLock { state in
            if isNew { state.counts[object] = change } else { state.counts[object]? += change }
        }
    }

    /// Reports a semaphore that an outside thread signalled, or a group that it left.
    private func expectHome(_ kind: doors_wait, _ object: Object, _ session: DrivenSession) {
        let isHome = state.withLock { state in
            guard let count = state.counts[object] else { return true }
            if kind == doors_wait_group { return count == 0 }
            state.counts[object] = max(count - 1, 0)
            return count > 0
        }
        guard !isHome else { return }
        let title = title(of: kind, object)
        session.engine.noteLeaving("waited for \(title), and a thread that the explorer does not drive ended the wait")
    }

    private static func isOver(_ kind: doors_wait, _ object: Object, _ state: State) -> Bool {
        kind == doors_wait_item ? state.items[object]?.hasEnded ?? false : unsafe doors_is_open(kind, object.pointer)
    }

    private func isBarrierItem(_ work: QueuedWork, _ session: DrivenSession) -> Bool {
        guard let pointer = unsafe work.item else { return false }
        let item = unsafe Object(pointer)
        expectKnown(doors_wait_item, item, session)
        return state.withLock { $0.items[item]?.isBarrier ?? false }
    }

    /// Reports a work item that wasn't made in the execution, whose kind and state are unknown.
    private func expectKnown(_ kind: doors_wait, _ object: Object, _ session: DrivenSession) {
        guard kind == doors_wait_item, state.withLock({ $0.items[object] == nil }) else { return }
        session.engine.noteLeaving("used a work item that was made outside the scenario")
    }

    func createItem(_ object: Object, isBarrier: Bool) {
        state.withLock { $0.items[object] = Item(isBarrier: isBarrier) }
    }

    /// Also retains the target: Dispatch's own reference keeps it alive, but new references can't be created from that one.
    func createQueue(_ object: Object, target: Object) {
        for object in [object, target] { unsafe doors_retain(object.pointer) }
        state.withLock { $0.targets[object] = target }
    }

    /// Returns the lane of a queue; `nil` if it can't be driven, which is recorded.
    private func queue(_ object: Object, _ session: DrivenSession) -> Queue? {
        if let queue = state.withLock({ $0.queues[object] }) { return queue }
        let kind = unsafe doors_kind(object.pointer)
        guard kind != doors_queue_unknown else {
            session.engine.noteLeaving("used '\(label(of: object))', a queue of a special kind, which isn't driven")
            return nil
        }
        var target = kind == doors_queue_main ? session.lane(of: MainActor.shared) : nil
        if let object = state.withLock({ $0.targets[object] }) { target = self.queue(object, session)?.lane }
        let name = kind == doors_queue_main ? "main queue" : kind == doors_queue_global ? "global queue" : label(of: object)
        let isConcurrent = kind == doors_queue_concurrent || kind == doors_queue_global
        let lane = session.engine.addQueue(named: name, isConcurrent: isConcurrent, target: target)
        let queue = Queue(lane: lane, kind: kind)
        unsafe doors_retain(object.pointer)
        state.withLock { $0.queues[object] = queue }
        return queue
    }

    private func label(of object: Object) -> String {
        let label = unsafe String(cString: doors_label(object.pointer))
        return label.isEmpty ? "queue" : label
    }

    private func title(of kind: doors_wait, _ object: Object) -> String {
        state.withLock { state in
            if let name = state.names[object] { return name }
            let kind = kind == doors_wait_group ? "group" : kind == doors_wait_item ? "work item" : "semaphore"
            let name = "the \(kind) \(state.names.values.count { $0.hasPrefix("the \(kind)") } + 1)"
            state.names[object] = name
            return name
        }
    }
}
