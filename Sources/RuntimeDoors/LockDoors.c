#define _GNU_SOURCE
#include "Dispatch.h"
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
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

// Whether locks are driven on this thread, by whatever code.
IN_CALLER bool drives_locks(doors_session *session) { return session && session->open & doors_locks; }

// The session, if the program's own code calls, perhaps by way of Foundation.
static doors_session *session_of(uintptr_t caller) {
    doors_session *session = doors_entered;
    return drives_locks(session) && (is_in(program, caller) || is_lock(caller)) ? session : NULL;
}

IN_CALLER doors_session *locking(void) { return session_of((uintptr_t)__builtin_return_address(0)); }

// Calls the simulation, with the doors shut.
#define TELL(session, call)                 \
    do {                                    \
        doors_enter(NULL);                  \
        callbacks.call;                     \
        doors_enter(session);               \
    } while (0)

// The same, for the simulation's answer.
#define ASKED(session, call) ({ doors_enter(NULL); __auto_type answer = callbacks.call; doors_enter(session); answer; })

// Tells what a real function has done to a lock.
static int noted(doors_session *session, void *lock, int result, bool is_taken) {
    if (result == 0) TELL(session, note(session->owner, lock, is_taken));
    return result;
}

// Replaces a function that all code calls, libraries, too. Where no locks are driven it is a few instructions more than the original;
// what saves registers is another function.
#define LOCK_FUNCTION(name, type)                                                                   \
    __attribute__((noinline)) static int driven_##name(type *lock, uintptr_t caller);               \
    REPLACE(int, name, type *lock) {                                                                \
        name##_function *known = KNOWN(name);                                                       \
        if (known && !drives_locks(doors_entered)) return known(lock);                              \
        return driven_##name(lock, (uintptr_t)__builtin_return_address(0));                         \
    }                                                                                               \
    static int driven_##name(type *lock, uintptr_t caller)
#define TAKES(name, type, kind)                                                    \
    LOCK_FUNCTION(name, type) {                                                    \
        doors_session *session = session_of(caller);                               \
        if (session && ASKED(session, take(session->owner, kind, lock))) return 0; \
        return real_##name()(lock);                                                \
    }
#define NOTES(name, type, is_taken)                                                \
    LOCK_FUNCTION(name, type) {                                                    \
        doors_session *session = session_of(caller);                               \
        if (!session) return real_##name()(lock);                                  \
        if (is_taken) TELL(session, stop(session->owner));                         \
        return noted(session, lock, real_##name()(lock), is_taken);                \
    }

TAKES(pthread_mutex_lock, pthread_mutex_t, doors_lock_mutex)
TAKES(pthread_rwlock_rdlock, pthread_rwlock_t, doors_lock_read)
TAKES(pthread_rwlock_wrlock, pthread_rwlock_t, doors_lock_write)
NOTES(pthread_mutex_trylock, pthread_mutex_t, true)
NOTES(pthread_rwlock_tryrdlock, pthread_rwlock_t, true)
NOTES(pthread_rwlock_trywrlock, pthread_rwlock_t, true)
NOTES(pthread_mutex_unlock, pthread_mutex_t, false)
NOTES(pthread_rwlock_unlock, pthread_rwlock_t, false)

// Cancelling a task wakes the threads that slept while a handler had stopped, since the runtime runs handlers under its own lock of the
// task. The step stops before it could meet what they do now.
#define CANCELS(name)                                                                           \
    REPLACE(SWIFT void, name, void *cancelled, void *first, void *second, void *third) {        \
        real_##name()(cancelled, first, second, third);                                         \
        doors_session *session = doors_entered;                                                 \
        if (drives_locks(session)) TELL(session, settle(session->owner));                       \
    }

CANCELS($sScT6cancelyyF)     // Task
CANCELS($sScG9cancelAllyyF)  // TaskGroup
CANCELS($sScg9cancelAllyyF)  // ThrowingTaskGroup

// 16. Random numbers

// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014.
static uint64_t draw(doors_session *session) {
    const uint64_t gamma = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t value = atomic_fetch_add_explicit(&session->random, gamma, memory_order_relaxed) + gamma;
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

static doors_session *drawing(void) {
    doors_session *session = doors_entered;
    return session && session->open & doors_random ? session : NULL;
}

static void fill(doors_session *session, void *bytes, size_t count) {
    for (size_t start = 0; start < count; start += sizeof(uint64_t)) {
        uint64_t value = draw(session);
        memcpy((char *)bytes + start, &value, count - start < sizeof value ? count - start : sizeof value);
    }
}

REPLACE(long, getrandom, void *bytes, size_t count, unsigned flags) {
    doors_session *session = drawing();
    if (!session) return real_getrandom()(bytes, count, flags);
    fill(session, bytes, count);
    return (long)count;
}

REPLACE(void, arc4random_buf, void *bytes, size_t count) {
    doors_session *session = drawing();
    if (session) fill(session, bytes, count);
    else real_arc4random_buf()(bytes, count);
}

REPLACE(uint32_t, arc4random, void) {
    doors_session *session = drawing();
    return session ? (uint32_t)draw(session) : real_arc4random()();
}

// Of version 4. Source: RFC 9562, section 5.4.
REPLACE(void, _foundation_uuid_generate_random, uint8_t *uuid) {
    doors_session *session = drawing();
    if (!session) return real__foundation_uuid_generate_random()(uuid);
    fill(session, uuid, 16);
    uuid[6] = (uuid[6] & 0x0f) | 0x40;
    uuid[8] = (uuid[8] & 0x3f) | 0x80;
}

// Not declared by `unistd.h` here, since it takes any number of arguments, which are where these six are.
REPLACE(long, syscall, long number, long first, long second, long third, long fourth, long fifth, long sixth) {
    doors_session *session = doors_entered;
    if (session && number == SYS_getrandom && session->open & doors_random) {
        fill(session, (void *)first, (size_t)second);
        return second;
    }
    bool locks = session && number == SYS_futex && (second & FUTEX_CMD_MASK) == FUTEX_LOCK_PI && session->open & doors_locks;
    if (locks && ASKED(session, take(session->owner, doors_lock_owned, (void *)first))) return 0;
    return real_syscall()(number, first, second, third, fourth, fifth, sixth);
}

// A lock whose memory has its owner, as the system wants it of a lock that gives its owner the waiting thread's priority. Source:
// futex(2).
typedef _Atomic uint32_t owned;

int32_t doors_owner(const void *lock) {
    return atomic_load_explicit((owned *)lock, memory_order_relaxed) & FUTEX_TID_MASK;
}

static uint32_t thread_number(void) { return (uint32_t)real_syscall()(SYS_gettid, 0, 0, 0, 0, 0, 0); }

static bool try_owned(owned *lock) {
    uint32_t free = 0;
    return atomic_compare_exchange_strong(lock, &free, thread_number());
}

static void free_owned(owned *lock) {
    uint32_t own = thread_number();
    if (atomic_compare_exchange_strong(lock, &own, 0)) return;
    real_syscall()(SYS_futex, (long)lock, FUTEX_UNLOCK_PI_PRIVATE, 0, 0, 0, 0);  // a thread waits in the kernel
}

bool doors_try(doors_lock kind, void *lock) {
    switch (kind) {
    case doors_lock_mutex: return real_pthread_mutex_trylock()(lock) == 0;
    case doors_lock_read: return real_pthread_rwlock_tryrdlock()(lock) == 0;
    case doors_lock_write: return real_pthread_rwlock_trywrlock()(lock) == 0;
    case doors_lock_owned: return try_owned(lock);
    }
}

void doors_free(doors_lock kind, void *lock) {
    switch (kind) {
    case doors_lock_mutex: real_pthread_mutex_unlock()(lock); break;
    case doors_lock_read: case doors_lock_write: real_pthread_rwlock_unlock()(lock); break;
    case doors_lock_owned: free_owned(lock);
    }
}

void doors_take(void *mutex) { real_pthread_mutex_lock()(mutex); }

// Conditions: the simulation lets threads wait. A thread that it doesn't drive waits in the real one, which is signalled, too.

// -1: the thread can't stop.
static int await(doors_session *session, pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t limit) {
    doors_wake wake = ASKED(session, wait(session->owner, condition, mutex, limit));
    return wake == doors_signalled ? 0 : wake == doors_late ? ETIMEDOUT : -1;
}

REPLACE(int, pthread_cond_wait, pthread_cond_t *condition, pthread_mutex_t *mutex) {
    doors_session *session = locking();
    int result = session ? await(session, condition, mutex, -1) : -1;
    return result < 0 ? real_pthread_cond_wait()(condition, mutex) : result;
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
    int result = await(session, condition, mutex, left > 0 ? left : 0);
    return result < 0 ? real_pthread_cond_timedwait()(condition, mutex, limit) : result;
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
    CHECK($sScT6cancelyyF);
    CHECK(pthread_mutex_lock);
    CHECK(pthread_mutex_unlock);
    CHECK(pthread_rwlock_wrlock);
    CHECK(pthread_cond_wait);
    CHECK(pthread_cond_timedwait);
    CHECK(syscall);
    CHECK(getrandom);
    callbacks = given;
    return NULL;
}

#else

const char *doors_install_locks(doors_lock_callbacks given) { return "support for this platform"; }
bool doors_try(doors_lock kind, void *lock) { return true; }
void doors_free(doors_lock kind, void *lock) {}
void doors_take(void *mutex) {}
int32_t doors_owner(const void *lock) { return 0; }

#endif
