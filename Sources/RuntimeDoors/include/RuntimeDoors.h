#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

// Functions of the Swift runtime and of the C library, replaced in the program that links this, so that a simulation can run code
// that knows nothing of it. Each is a door: open on a thread that runs a step of a simulation, and otherwise a load, a branch and
// a call of the original.
//
// 1. New tasks: `swift_task_create`
//    Gives each new unstructured task the simulation's executor, as `Task(executorPreference:)` would; children inherit it. A task
//    that starts on a default actor starts in that actor's lane. If the runtime's records of options change, the check fails.
// 2. Hops: `swift_task_switch`
//    An executor is an object and a witness table; a default actor is one without a table. A hop to it gets ours, so that each call
//    is a step of its own. The object stays the actor: the runtime takes the task for isolated to it, in its own functions too.
//    If actors got another executor than (actor, 0), hops would pass through, and the check would fail.
// 3. Main actor: `swift_task_getMainExecutor_hook`
//    The executor that stands for the main actor. `swift_task_enqueueMainExecutor_hook` is never called (swiftlang/swift#63104).
//    If the hook went, the main actor would leave the simulation, and the check would fail.
// 4. Time: `clock_gettime`, `gettimeofday`, `time`, `timespec_get`
//    `Date()`, `ContinuousClock.now` and `SuspendingClock.now` are the simulation's. CPU times stay real.
//    If the runtime read its clocks by another way, a sleep would come with a wrong deadline, and the check would fail.
// 5. Ways out: `pthread_create`, `connect`, `timerfd_settime`, `nanosleep`, `clock_nanosleep`, `usleep`, `sleep`, `poll` and
//    `select` without files, `swift_task_enqueueGlobal_hook`, and the first door for the global executor
//    Each tells the simulation that the step leaves it, so that the schedule fails, and then does what the original does.
//    If one went, the check would fail; what uses a way that isn't here is noticed when it comes back.
// 6. The default pool by its name: `globalConcurrentExecutor`
//    Is the simulation's executor, so that code which asks for the default pool stays in the simulation, as `TokenService` does.
//    If the getter were inlined, such code would leave the simulation, and the check would fail.
//
// 7. Sleeps: `dispatch_after_f`; `dispatch_source_create`, `_set_timer` and `dispatch_activate` for one with a tolerance
//    The runtime lets Dispatch run the job that ends a sleep. Called with a function of the runtime, or by the runtime, these give the
//    job and its delay to the simulation. If sleeps came by another way, they would leave the simulation, and the check would fail.

/// An executor as the runtime passes it: an object and a witness table, possibly with flags.
typedef struct {
    uintptr_t identity, implementation;
} doors_executor;

/// The doors, as bits.
enum {
    doors_tasks = 1,
    doors_hops = 2,
    doors_main = 4,
    doors_time = 8,
    doors_leaving = 16,
    doors_pool = 32,
    doors_sleeps = 64,
};

/// One execution of a simulation.
typedef struct {
    /// The doors that are open in its steps.
    uint32_t open;
    /// Nanoseconds since its start.
    _Atomic int64_t now;
    /// How far its random numbers are.
    _Atomic uint64_t random;
    /// The executor of new tasks, as the words of an `any TaskExecutor`; retained by each task.
    doors_executor pool;
    /// The executor of the main actor.
    doors_executor main;
    /// The argument of the callbacks.
    void *_Nullable owner;
} doors_session;

/// The callbacks of the doors to a simulation.
typedef struct {
    /// The witness table of the executors that stand for default actors.
    uintptr_t actors;
    /// Takes note of a step that leaves the simulation, such as "started a thread".
    void (*_Nonnull leave)(void *_Nonnull owner, const char *_Nonnull deed);
    /// Takes the job that ends a sleep, and the nanoseconds until then.
    void (*_Nonnull sleep)(void *_Nonnull owner, void *_Nonnull job, int64_t delay);
    /// The program's global executor.
    uintptr_t global;
} doors_callbacks;

/// Takes note of what the doors ask. The hooks are in place only while doors are open.
///
/// Returns the name of what is missing; NULL: nothing is.
const char *_Nullable doors_install(doors_callbacks callbacks);

/// Opens the doors of a session on this thread, and returns the session for which they were open before.
doors_session *_Nullable doors_enter(doors_session *_Nullable session);

/// The session whose step this thread runs; NULL: none.
doors_session *_Nullable doors_current(void);

/// Tells the session of this thread that its step leaves it, and returns the session; NULL: there is none.
doors_session *_Nullable doors_leave(const char *_Nonnull deed);

/// Gives the simulation the job that ends a sleep.
void doors_sleep(doors_session *_Nonnull session, void *_Nonnull job, int64_t delay);

/// The name of a way out that other libraries take without passing here; NULL: there is none.
const char *_Nullable doors_missing_exit(void);

/// Takes down the calls of this thread, the innermost first, and returns their number.
int doors_calls(uintptr_t *_Nonnull calls, int most);

/// Returns the program's function that made a call, as the linker names it; NULL: unknown.
const char *_Nullable doors_caller_name(uintptr_t call);

/// Reads the functions in which a suspended task continues, the innermost first, and returns their number.
///
/// A task has the function at the word `function`, and its context at the word `context`. A context begins with that of the caller
/// and the function with which the caller continues. Where memory can't be read, the reading ends: a task of another layout gives
/// other functions, and ends no process.
int doors_functions(const void *_Nonnull task, int function, int context, uintptr_t *_Nonnull functions, int most);

/// The executor on which this thread runs a task.
doors_executor doors_current_executor(void);

/// Gives a job to a default actor itself.
void doors_enqueue_on_actor(void *_Nonnull job, uintptr_t actor);

static inline void doors_set_now(doors_session *_Nonnull session, int64_t now) {
    atomic_store_explicit(&session->now, now, memory_order_relaxed);
}

#include "QueueDoors.h"
#include "LockDoors.h"
