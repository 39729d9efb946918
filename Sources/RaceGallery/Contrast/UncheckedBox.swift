/// A reference to an object that is not `Sendable`, for the tasks and threads of a trial.
///
/// `@unchecked` is safe only in trials: an exploration runs one thread at a time, which passes control to the next through a
/// semaphore, and a stage has one thread. So there is no data race. An exploration shows what several threads would do if each
/// access were atomic; what real threads do is undefined.
struct UncheckedBox<Object: AnyObject>: @unchecked Sendable {
    let object: Object

    init(_ object: Object) {
        self.object = object
    }
}
