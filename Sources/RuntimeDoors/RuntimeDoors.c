#define _GNU_SOURCE
#include "RuntimeDoors.h"

#ifdef __linux__

#include "Originals.h"
#include <stddef.h>
#include <sys/time.h>
#include <time.h>

#define ASYNC __attribute__((swiftasynccall))
#define CONTEXT __attribute__((swift_async_context))

_Thread_local doors_session *doors_entered;
// Written once before a session exists; a session is handed to other threads only after that.
static doors_callbacks callbacks;

static doors_session *with(uint32_t door) {
    doors_session *session = doors_entered;
    return session && (session->open & door) ? session : NULL;
}

doors_session *doors_current(void) { return doors_entered; }

static void hook(int change);
static bool is_hooked(const doors_session *session) { return session && session->open & (doors_main | doors_leaving); }

doors_session *doors_enter(doors_session *session) {
    doors_session *before = doors_entered;
    if (is_hooked(before) != is_hooked(session)) hook(is_hooked(session) ? 1 : -1);
    doors_entered = session;
    return before;
}

doors_session *doors_leave(const char *deed) {
    doors_session *session = with(doors_leaving);
    if (session) {
        doors_enter(NULL);  // a report is the simulation's own work
        callbacks.leave(session->owner, deed);
        doors_enter(session);
    }
    return session;
}

void doors_sleep(doors_session *session, void *job, int64_t delay) {
    doors_enter(NULL);
    callbacks.sleep(session->owner, job, delay);
    doors_enter(session);
}

// New tasks. Source of the records: swift/include/swift/ABI/TaskOptions.h and MetadataValues.h, `enum class TaskOptionRecordKind`.

enum {
    kind_mask = 0xff,
    kind_initial_executor = 0,
    kind_group = 1,
    kind_async_let = 2,
    kind_async_let_with_buffer = 3,
    kind_preference = 5,
    kind_owned_preference = 6,
    kind_inline = 0xff,
};

typedef struct option {
    size_t flags;
    struct option *parent;
    doors_executor executor;
} option;

typedef struct {
    void *task, *context;
} created;

extern void *swift_retain(void *);

// The task releases it.
static doors_executor retained(doors_executor executor) {
    swift_retain((void *)executor.identity);
    return executor;
}

REPLACE(SWIFT created, swift_task_create, size_t flags, option *options, void *type, void *entry, void *context) {
    doors_session *session = doors_entered;
    if (!session) return real_swift_task_create()(flags, options, type, entry, context);
    bool is_driven = session->open & doors_tasks, has_executor = false;
    option *preference = NULL;
    for (option *each = options; each; each = each->parent) {
        switch (each->flags & kind_mask) {
        case kind_initial_executor:
            if ((session->open & doors_hops) && each->executor.identity && !each->executor.implementation) {
                each->executor.implementation = callbacks.actors;
                is_driven = true;
            }
            break;
        case kind_group: case kind_async_let: case kind_async_let_with_buffer: case kind_inline:
            has_executor = true;  // a child has its parent's
            break;
        case kind_preference: case kind_owned_preference:
            preference = each;
            if (each->executor.identity == callbacks.global) doors_leave("started a task on the global executor");
            break;
        }
    }
    if (preference && !has_executor && is_driven && !preference->executor.identity) {  // `Task.immediate` passes nil for none
        preference->flags = (preference->flags & ~(size_t)kind_mask) | kind_owned_preference;
        preference->executor = retained(session->pool);
    }
    if (preference || has_executor || !is_driven) return real_swift_task_create()(flags, options, type, entry, context);
    option pool = {kind_owned_preference, options, retained(session->pool)};
    return real_swift_task_create()(flags, &pool, type, entry, context);
}

// The default pool by its name, which a task may prefer to an executor that it came from. The getter's mangled name is part of
// Swift's stable ABI; it returns an owned `any TaskExecutor`.

REPLACE(SWIFT doors_executor, $ss24globalConcurrentExecutorSch_pvg, void) {
    doors_session *session = with(doors_pool);
    return session ? retained(session->pool) : real_$ss24globalConcurrentExecutorSch_pvg()();
}

// Hops. The original is called in tail position: a task that switches leaves no frame behind.

USE(SWIFT doors_executor, swift_task_getCurrentExecutor, void)

// Whether the task that runs here is where it would hop to. `Task.immediate` outside of actors runs on an executor that has no
// identity and a flag: source: swift/include/swift/ABI/Executor.h, `forSynchronousStart`.
static bool is_there(uintptr_t identity) {
    doors_executor present = real_swift_task_getCurrentExecutor()();
    return present.identity == identity && (identity || present.implementation);
}

typedef ASYNC void resume_function(CONTEXT void *);

REPLACE(ASYNC void, swift_task_switch, CONTEXT void *context, resume_function *resume, uintptr_t identity, uintptr_t implementation) {
    doors_session *session = with(doors_hops);
    // The runtime would send away a task that began at once, since it prefers an executor and runs on none.
    if (session && is_there(identity)) {
        // A tail call needs the type of this function. The other arguments are in registers that no function keeps.
        __attribute__((musttail)) return ((swift_task_switch_function *)resume)(context, resume, identity, implementation);
    }
    if (session && identity && !implementation) implementation = callbacks.actors;
    __attribute__((musttail)) return real_swift_task_switch()(context, resume, identity, implementation);
}

// Time. It begins on 2000-01-01, and 100 s after the machine: not at zero, so that code may subtract, but in the past, so that a
// timer outside that gets such a deadline fires at once, and is noticed.

static bool is_driven(clockid_t clock) {
    switch (clock) {
    case CLOCK_REALTIME: case CLOCK_MONOTONIC:
    case CLOCK_REALTIME_COARSE: case CLOCK_MONOTONIC_COARSE: case CLOCK_MONOTONIC_RAW: case CLOCK_BOOTTIME:
        return true;
    default:
        return false;
    }
}

REPLACE(int, clock_gettime, clockid_t clock, struct timespec *time) {
    doors_session *session = with(doors_time);
    if (!session || !is_driven(clock)) return real_clock_gettime()(clock, time);
    int64_t now = atomic_load_explicit(&session->now, memory_order_relaxed);
    bool is_date = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
    time->tv_sec = (is_date ? 946684800 : 100) + now / 1000000000;
    time->tv_nsec = now % 1000000000;
    return 0;
}

// The C library's older ways to ask for the date.

time_t time(time_t *seconds) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (seconds) *seconds = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    *time = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return 0;
}

int timespec_get(struct timespec *time, int base) {
    return base == TIME_UTC && clock_gettime(CLOCK_REALTIME, time) == 0 ? base : 0;
}

// Hooks of the runtime. They are in place while a thread has its doors open, since to other libraries a hook is a sign that theirs
// is on.

typedef SWIFT doors_executor main_function(void);
typedef SWIFT doors_executor main_hook(main_function *);
typedef SWIFT void global_function(void *);
typedef SWIFT void global_hook(void *, global_function *);

// Atomic: a hook may be called while they are put in place.
static main_hook **main_slot;
static _Atomic(main_hook *) other_main;
static global_hook **global_slot;
static _Atomic(global_hook *) other_global;

USE(SWIFT void, swift_task_enqueue, void *, uintptr_t, uintptr_t)

static SWIFT doors_executor get_main(main_function *original) {
    doors_session *session = with(doors_main);
    if (session) return session->main;
    return other_main ? other_main(original) : original();
}

static SWIFT void enqueue_global(void *job, global_function *original) {
    doors_leave("sent a job to the global executor");
    // The executor uses Dispatch.
    doors_session *before = doors_enter(NULL);
    if (other_global) other_global(job, original);
    else original(job);
    doors_enter(before);
}

doors_executor doors_current_executor(void) { return real_swift_task_getCurrentExecutor()(); }

void doors_enqueue_on_actor(void *job, uintptr_t actor) { real_swift_task_enqueue()(job, actor, 0); }

// Code may take its order from a dictionary or a set: one seed for all processes and tables makes it the same in each schedule, as the
// variable SWIFT_DETERMINISTIC_HASHING does. It must come before the first table. Source:
// swift/stdlib/public/SwiftShims/swift/shims/GlobalObjects.h, `struct _SwiftHashingParameters`.
__attribute__((constructor)) static void fix_hashing(void) {
    struct {
        uint64_t seeds[2];
        bool is_deterministic;
    } *hashing = dlsym(RTLD_DEFAULT, "_swift_stdlib_Hashing_parameters");
    if (!hashing) return;
    hashing->seeds[0] = hashing->seeds[1] = 0;
    hashing->is_deterministic = true;
}

const char *doors_install(doors_callbacks given) {
    main_slot = dlsym(RTLD_DEFAULT, "swift_task_getMainExecutor_hook");
    global_slot = dlsym(RTLD_DEFAULT, "swift_task_enqueueGlobal_hook");
    if (!real_swift_task_create()) return "swift_task_create";
    if (!real_$ss24globalConcurrentExecutorSch_pvg()) return "globalConcurrentExecutor";
    if (!real_swift_task_switch()) return "swift_task_switch";
    if (!real_swift_task_getCurrentExecutor()) return "swift_task_getCurrentExecutor";
    if (!main_slot) return "swift_task_getMainExecutor_hook";
    if (!real_swift_task_enqueue()) return "swift_task_enqueue";
    if (!global_slot) return "swift_task_enqueueGlobal_hook";
    if (doors_missing_exit()) return doors_missing_exit();
    callbacks = given;
    return NULL;
}

static void hook(int change) {
    static atomic_flag is_busy = ATOMIC_FLAG_INIT;
    static int threads;
    while (atomic_flag_test_and_set_explicit(&is_busy, memory_order_acquire)) {}
    threads += change;
    if (threads == 1 && change > 0) {
        if (*main_slot != get_main) other_main = *main_slot, *main_slot = get_main;
        if (*global_slot != enqueue_global) other_global = *global_slot, *global_slot = enqueue_global;
    } else if (threads == 0) {
        // A hook of the code under test stays.
        if (*main_slot == get_main) *main_slot = other_main;
        if (*global_slot == enqueue_global) *global_slot = other_global;
    }
    atomic_flag_clear_explicit(&is_busy, memory_order_release);
}

#else

// Not tried anywhere else yet: the doors stay shut and say so.
const char *doors_install(doors_callbacks given) { return "doors: they are made for Linux so far"; }
doors_session *doors_enter(doors_session *session) { return NULL; }
doors_session *doors_current(void) { return NULL; }
doors_session *doors_leave(const char *deed) { return NULL; }
doors_executor doors_current_executor(void) { return (doors_executor){0, 0}; }
void doors_enqueue_on_actor(void *job, uintptr_t actor) {}

#endif
