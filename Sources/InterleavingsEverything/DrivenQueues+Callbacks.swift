import Interleavings
import RuntimeDoors

extension DrivenQueues {
    /// The callbacks of the doors for queues; the thread's session is the owner.
    static let callbacks = unsafe doors_queue_callbacks(
        enqueue: { owner, queue, isBarrier, delay, work in
            let session = unsafe DrivenSession.at(owner)
            unsafe session.queues.enqueue(QueuedWork(work), in: Object(queue), isBarrier: isBarrier, after: delay, session)
        },
        sync: { owner, queue, isBarrier, function, context in
            let session = unsafe DrivenSession.at(owner)
            unsafe session.queues.sync(in: Object(queue), isBarrier: isBarrier, session) { isBarrier in
                unsafe session.perform(in: queue, isBarrier: isBarrier, function, context)
            }
        },
        notify: { owner, kind, object, queue, work in
            let session = unsafe DrivenSession.at(owner)
            unsafe session.queues.notify(QueuedWork(work), in: Object(queue), after: kind, of: Object(object), session)
        },
        wait: { owner, kind, object, duration in
            let session = unsafe DrivenSession.at(owner)
            return unsafe session.queues.wait(for: kind, of: Object(object), duration, session)
        },
        can_wait: { owner in unsafe DrivenSession.at(owner).engine.canStop },
        stop: { owner in unsafe DrivenSession.at(owner).engine.stop() },
        change: { owner, kind, object in
            let session = unsafe DrivenSession.at(owner)
            unsafe session.queues.change(kind, of: Object(object), session)
        },
        count: { owner, object, change, isNew in
            unsafe DrivenSession.at(owner).queues.count(Object(object), change, isNew: isNew)
        },
        create_queue: { owner, queue, target in
            unsafe DrivenSession.at(owner).queues.createQueue(Object(queue), target: Object(target))
        },
        create_item: { owner, item, isBarrier in
            unsafe DrivenSession.at(owner).queues.createItem(Object(item), isBarrier: isBarrier)
        })
}
