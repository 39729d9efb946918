import Interleavings
import RuntimeDoors
import TokenServiceConcurrency

/// Stands for every default actor, so that each of its jobs is a separate step.
///
/// To the runtime an executor is an object and a witness table. A hop to a default actor, which has no table, gets this
/// class's table, and the object stays the actor. So the runtime still treats the actor's code as isolated to it, and its own
/// functions, such as `withCheckedContinuation`, don't hop away.
///
/// `self` is therefore an actor, never an instance of this class: only its address and its type may be used. This is safe because
/// the class is final and has no properties, and an actor is reference-counted like any object.
@safe final class ActorExecutor: SerialExecutor {
    private init() {}

    func enqueue(_ job: consuming ExecutorJob) {
        let actor = ActorReference(self)
        guard let session = DrivenSession.current ?? Self.session(of: actor) else {
            // The actor has outlived its execution and the pool that retained the session.
            return unsafe doors_enqueue_on_actor(unsafeBitCast(UnownedJob(job), to: UnsafeMutableRawPointer.self), actor.address)
        }
        session.engine.enqueue(job, lane: session.lane(of: self), on: self, in: session)
    }

    /// A block of the main queue runs outside of any task, where the runtime asks the executor whether it is isolated.
    @available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *)
    func isIsolatingCurrentContext() -> Bool? { self === MainActor.shared ? doors_is_on_main() : nil }

    /// The witness table.
    static let table = unsafe unsafeBitCast(ActorExecutor().asUnownedSerialExecutor(), to: doors_executor.self).implementation

    /// The executor that stands for an actor, as the runtime passes it.
    static func words(for actor: some Actor) -> doors_executor {
        doors_executor(identity: ActorReference(actor).address, implementation: table)
    }

    /// The execution of an actor, in a class because structs crash here.
    ///
    /// In debug builds of Swift 6.3.1 a look-up returns garbage for a missing key, if the values are structs that hold a weak
    /// reference and an `ObjectIdentifier`, and a program of nine lines crashes.
    private final class Owner: Sendable {
        weak let session: DrivenSession?
        /// Compared instead of the session: reading the session might create its last strong reference, which would be released
        /// under the lock.
        let identity: ObjectIdentifier

        init(_ session: DrivenSession) {
            self.session = session
            identity = ObjectIdentifier(session)
        }
    }

    /// The execution of each actor, for jobs from outside threads.
    private static let owners = Lock<[ActorReference: Owner]>([:])

    /// How many actors are known.
    static var known: Int { owners.withLock { $0.count } }

    private static func session(of actor: ActorReference) -> DrivenSession? { owners.withLock { $0[actor]?.session } }

    static func remember(_ actor: ActorReference, in session: DrivenSession) {
        owners.withLock { $0[actor] = Owner(session) }
    }

    /// Forgets the actors of an execution that ends, except those whose address now belongs to an actor of another execution.
    static func forget(_ actors: [ActorReference], of session: ObjectIdentifier) {
        owners.withLock { owners in
            for actor in actors where owners[actor]?.identity == session { owners[actor] = nil }
        }
    }
}

/// An actor by its address and its type, which distinguishes it from an earlier one at the same address.
struct ActorReference: Hashable, Sendable {
    let address: UInt
    private let type: UInt

    init(_ actor: AnyObject) {
        unsafe address = UInt(bitPattern: Unmanaged.passUnretained(actor).toOpaque())
        type = UInt(bitPattern: ObjectIdentifier(Swift.type(of: actor)))
    }
}
