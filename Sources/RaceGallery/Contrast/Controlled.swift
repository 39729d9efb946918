/// A reference to an object that knows no threads, for the controlled threads of an exploration.
///
/// `@unchecked` holds as long as it is used in an exploration only: of its threads one runs at a time, and hands over to the
/// next through a semaphore, so there is no data race. What it shows is what several threads would do if each access were
/// whole; what they do in truth is undefined.
struct Controlled<Object: AnyObject>: @unchecked Sendable {
    let object: Object

    init(_ object: Object) {
        self.object = object
    }
}
