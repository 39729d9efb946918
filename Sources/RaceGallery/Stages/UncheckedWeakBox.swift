/// A weak reference to an object that lives on one thread, for the handler of a loader that answers on that same thread.
///
/// The first two stages have no protection at all, and show the consequences. They are classes without `Sendable`, so the
/// compiler keeps their users on one thread or one queue. It cannot follow a loader's handler: a loader may call from any
/// thread, so its handler must be `Sendable`.
///
/// `@unchecked` holds as long as the loader answers on the thread, or queue, on which the service is used; both are chosen
/// where the service is made. With any other loader the stage behaves as in the articles: undefined.
struct UncheckedWeakBox<Object: AnyObject>: @unchecked Sendable {
    weak let object: Object?

    init(_ object: Object) {
        self.object = object
    }
}
