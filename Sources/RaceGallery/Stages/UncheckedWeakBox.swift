/// A weak reference to an object that lives on one thread, for the handler of a loader that answers on that same thread.
///
/// The first two stages have no protection, and show the consequences. They are classes that aren't `Sendable`, so the compiler
/// keeps their users on one thread or queue. That doesn't cover a loader's handler, which must be `Sendable`, since a loader may
/// call it from any thread.
///
/// `@unchecked` is safe as long as the loader answers on the thread, or queue, on which the service is used; both are chosen
/// where the service is created. With any other loader the behaviour is undefined, as in the articles.
struct UncheckedWeakBox<Object: AnyObject>: @unchecked Sendable {
    weak let object: Object?

    init(_ object: Object) {
        self.object = object
    }
}
