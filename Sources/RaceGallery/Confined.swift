/// A weak reference to an object that lives on one thread, for the handler of a loader that answers on that same thread.
///
/// The first two stages have no protection at all; that is what they are here to show. They are classes without
/// `Sendable`, so that the compiler keeps their users on one thread, or one queue. Only a loader's handler it cannot follow:
/// a loader may call from any thread, so its handler must be `Sendable`.
///
/// `@unchecked` holds as long as the loader answers on the thread, or queue, on which the service is used: whoever makes
/// the service chooses the loader, and answers for that. With any other loader the stage behaves as in the articles:
/// undefined.
struct Confined<Object: AnyObject>: @unchecked Sendable {
    weak let object: Object?

    init(_ object: Object) {
        self.object = object
    }
}
