#define _GNU_SOURCE
#include "Dispatch.h"
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#ifdef __linux__

static doors_lock_callbacks callbacks;
static doors_library program, foundation;

// The functions `lock` and `unlock` of Foundation's classes as witnesses of `NSLocking`, by which `withLock` calls them. They and what
// they share lie together, and have no names.
static uintptr_t witnesses[6];

static void find_witnesses(void) {
    static const char *const tables[] = {
        "$s10Foundation6NSLockCAA9NSLockingAAWP", "$s10Foundation15NSRecursiveLockCAA9NSLockingAAWP",
        "$s10Foundation11NSConditionCAA9NSLockingAAWP",
    };
    for (int index = 0; index < 3; index++) {
        const uintptr_t *table = dlsym(RTLD_DEFAULT, tables[index]);
        for (int function = 0; table && function < 2; function++) witnesses[2 * index + function] = table[1 + function];
    }
}

static bool is_lock_function(uintptr_t address) {
    for (int index = 0; index < 6; index++) {
        if (address + 256 > witnesses[index] && address < witnesses[index] + 256) return true;
    }
    Dl_info info;
    return dladdr((void *)address, &info) && info.dli_sname && !strncmp(info.dli_sname, "$s10Foundation11NSConditionC4wait", 33);
}

// Whether a function of Foundation is that of a lock or a condition, and not a part of Foundation that takes a lock for itself. Few
// places call, so that each is looked up once.
static bool is_lock(uintptr_t address) {
    static _Atomic uintptr_t known[64];
    if (!is_in(foundation, address)) return false;
    uintptr_t answer = atomic_load_explicit(&known[address / 2 % 64], memory_order_relaxed);
    if (answer >> 1 == address) return answer & 1;
    bool is_lock = is_lock_function(address);
    atomic_store_explicit(&known[address / 2 % 64], address << 1 | is_lock, memory_order_relaxed);
    return is_lock;
}

// The session, if the program's own code calls, perhaps by way of Foundation, and its thread can stop.
IN_CALLER doors_session *locking(void) {
    doors_session *session = doors_current();
    if (!session || !(session->open & doors_locks)) return NULL;
    uintptr_t caller = (uintptr_t)__builtin_return_address(0);
    if (!is_in(program, caller) && !is_lock(caller)) return NULL;
    bool can_stop = false;
    doors_enter(NULL);
    can_stop = callbacks.can_stop(session->owner);
    doors_enter(session);
    return can_stop ? session : NULL;
}

// Calls the simulation, with the doors shut.
#define TELL(session, call)                 \
    do {                                    \
        doors_enter(NULL);                  \
        callbacks.call;                     \
        doors_enter(session);               \
    } while (0)

// Waits until the lock is free and takes it; `false`: the thread can't stop any more.
static bool take(doors_session *session, doors_lock kind, void *lock) {
    bool is_taken;
    TELL(session, take(session->owner, kind, lock) ? (is_taken = true) : (is_taken = false));
    return is_taken;
}

// After a real attempt to take it.
static int attempted(doors_session *session, void *lock, int result) {
    if (session && result == 0) TELL(session, note(session->owner, lock, true));
    return result;
}

static int released(doors_session *session, void *lock, int result) {
    if (session && result == 0) TELL(session, note(session->owner, lock, false));
    return result;
}

REPLACE(int, pthread_mutex_lock, pthread_mutex_t *mutex) {
    doors_session *session = locking();
    return session && take(session, doors_lock_mutex, mutex) ? 0 : real_pthread_mutex_lock()(mutex);
}

REPLACE(int, pthread_mutex_trylock, pthread_mutex_t *mutex) {
    doors_session *session = locking();
    if (session) TELL(session, stop(session->owner));
    return attempted(session, mutex, real_pthread_mutex_trylock()(mutex));
}

REPLACE(int, pthread_mutex_unlock, pthread_mutex_t *mutex) {
    doors_session *session = locking();
    return released(session, mutex, real_pthread_mutex_unlock()(mutex));
}

REPLACE(int, pthread_rwlock_rdlock, pthread_rwlock_t *lock) {
    doors_session *session = locking();
    return session && take(session, doors_lock_read, lock) ? 0 : real_pthread_rwlock_rdlock()(lock);
}

REPLACE(int, pthread_rwlock_wrlock, pthread_rwlock_t *lock) {
    doors_session *session = locking();
    return session && take(session, doors_lock_write, lock) ? 0 : real_pthread_rwlock_wrlock()(lock);
}

REPLACE(int, pthread_rwlock_tryrdlock, pthread_rwlock_t *lock) {
    doors_session *session = locking();
    if (session) TELL(session, stop(session->owner));
    return real_pthread_rwlock_tryrdlock()(lock);
}

REPLACE(int, pthread_rwlock_trywrlock, pthread_rwlock_t *lock) {
    doors_session *session = locking();
    if (session) TELL(session, stop(session->owner));
    return attempted(session, lock, real_pthread_rwlock_trywrlock()(lock));
}

REPLACE(int, pthread_rwlock_unlock, pthread_rwlock_t *lock) {
    doors_session *session = locking();
    return released(session, lock, real_pthread_rwlock_unlock()(lock));
}

bool doors_try(doors_lock kind, void *lock) {
    switch (kind) {
    case doors_lock_mutex: return real_pthread_mutex_trylock()(lock) == 0;
    case doors_lock_read: return real_pthread_rwlock_tryrdlock()(lock) == 0;
    case doors_lock_write: return real_pthread_rwlock_trywrlock()(lock) == 0;
    }
}

void doors_free(doors_lock kind, void *lock) {
    if (kind == doors_lock_mutex) real_pthread_mutex_unlock()(lock);
    else real_pthread_rwlock_unlock()(lock);
}

void doors_take(void *mutex) { real_pthread_mutex_lock()(mutex); }

// Conditions: the simulation lets threads wait. A thread that it doesn't drive waits in the real one, which is signalled, too.

static int await(doors_session *session, pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t limit) {
    bool is_signalled;
    TELL(session, wait(session->owner, condition, mutex, limit) ? (is_signalled = true) : (is_signalled = false));
    return is_signalled ? 0 : ETIMEDOUT;
}

REPLACE(int, pthread_cond_wait, pthread_cond_t *condition, pthread_mutex_t *mutex) {
    doors_session *session = locking();
    return session ? await(session, condition, mutex, -1) : real_pthread_cond_wait()(condition, mutex);
}

REPLACE(int, pthread_cond_timedwait, pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *limit) {
    doors_session *session = locking();
    if (!session) {
        if (!is_for_dispatch()) doors_leave("waited for a condition with a time limit, which isn't driven");
        return real_pthread_cond_timedwait()(condition, mutex, limit);
    }
    // The clock that shows dates, or the other one: in a simulation they differ by decades.
    struct timespec now;
    clock_gettime(limit->tv_sec < 900000000 ? CLOCK_MONOTONIC : CLOCK_REALTIME, &now);
    int64_t left = (limit->tv_sec - now.tv_sec) * INT64_C(1000000000) + limit->tv_nsec - now.tv_nsec;
    return await(session, condition, mutex, left > 0 ? left : 0);
}

REPLACE(int, pthread_cond_signal, pthread_cond_t *condition) {
    doors_session *session = locking();
    if (session) TELL(session, signal(session->owner, condition, false));
    return real_pthread_cond_signal()(condition);
}

REPLACE(int, pthread_cond_broadcast, pthread_cond_t *condition) {
    doors_session *session = locking();
    if (session) TELL(session, signal(session->owner, condition, true));
    return real_pthread_cond_broadcast()(condition);
}

const char *doors_install_locks(doors_lock_callbacks given) {
    program.start = (uintptr_t)doors_install_locks;
    // Without Foundation there are no locks of it.
    foundation.start = (uintptr_t)dlsym(RTLD_DEFAULT, "$s10Foundation6NSLockC4lockyyF");
    doors_find(&program);
    if (foundation.start) doors_find(&foundation);
    find_witnesses();
    CHECK(pthread_mutex_lock);
    CHECK(pthread_mutex_unlock);
    CHECK(pthread_rwlock_wrlock);
    CHECK(pthread_cond_wait);
    CHECK(pthread_cond_timedwait);
    callbacks = given;
    return NULL;
}

#else

const char *doors_install_locks(doors_lock_callbacks given) { return "support for this platform"; }
bool doors_try(doors_lock kind, void *lock) { return true; }
void doors_free(doors_lock kind, void *lock) {}
void doors_take(void *mutex) {}

#endif
