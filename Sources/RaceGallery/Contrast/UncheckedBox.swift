/// A reference to an object that is not `Sendable`, for the tasks and threads of a trial.
///
/// `@unchecked` holds as long as it is used in trials only: of an exploration's threads one runs at a time, and hands over to
/// the next through a semaphore; a stage has one thread. So there is no data race. What an exploration shows is what several
/// threads would do if each access were whole; what real threads do is undefined.
struct UncheckedBox<Object: AnyObject>: @unchecked Sendable {
    let object: Object

    init(_ object: Object) {
        self.object = object
    }
}
