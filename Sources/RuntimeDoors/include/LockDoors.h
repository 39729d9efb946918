#pragma once

#include "RuntimeDoors.h"

// 15. Locks: `pthread_mutex_lock`, `_trylock`, `_unlock`; the same of `pthread_rwlock`; `pthread_cond_wait`, `_timedwait`, `_signal`,
//     `_broadcast`; `syscall` with which a `Mutex` waits for its owner; and `cancel()` and `cancelAll()` of tasks and groups
//    Open where a thread can stop inside a step, and only for calls of the program itself or of Foundation's locks on its behalf:
//    the runtime and other libraries take their locks as ever. The lock stays the real one; the simulation lets threads wait for it.
//    If a call came by another way, its thread would sleep in the kernel, and the explorer would find it there.
//    A `Mutex` that is free is taken without a call, by code that is inlined into the program: no thread can stop there.
// 16. Random numbers: `syscall` and `getrandom`, `arc4random`, `arc4random_buf`, `_foundation_uuid_generate_random`
//    Each execution draws the same ones, in the order of its calls: a replay knows only its choices. If numbers came by another way,
//    executions would differ.

enum { doors_locks = 8192, doors_random = 16384 };

typedef enum { doors_lock_mutex, doors_lock_read, doors_lock_write, doors_lock_owned } doors_lock;

/// How a thread's wait for a condition ended: in time, too late, or not at all, since the thread can't stop.
typedef enum { doors_signalled, doors_late, doors_undriven } doors_wake;

/// The callbacks of the doors to a simulation; times are in nanoseconds, -1: without end.
typedef struct {
    /// A call begins whose effect other steps may see.
    void (*_Nonnull stop)(void *_Nonnull owner);
    /// A call has ended that may have woken threads, which slept in the kernel.
    void (*_Nonnull settle)(void *_Nonnull owner);
    /// Takes a lock when it is free; returns `false` if the thread can't stop.
    bool (*_Nonnull take)(void *_Nonnull owner, doors_lock, void *_Nonnull lock);
    /// A lock was taken or released.
    void (*_Nonnull note)(void *_Nonnull owner, void *_Nonnull lock, bool is_taken);
    /// Releases a mutex, waits for a condition and takes the mutex again.
    doors_wake (*_Nonnull wait)(void *_Nonnull owner, void *_Nonnull condition, void *_Nonnull mutex, int64_t duration);
    void (*_Nonnull signal)(void *_Nonnull owner, void *_Nonnull condition, bool is_broadcast);
} doors_lock_callbacks;

/// Returns the name of what is missing; NULL: nothing is.
const char *_Nullable doors_install_locks(doors_lock_callbacks);

/// Takes a lock, if it is free.
bool doors_try(doors_lock, void *_Nonnull lock);
void doors_free(doors_lock, void *_Nonnull lock);
/// Takes a mutex, and blocks the thread until then.
void doors_take(void *_Nonnull mutex);
/// The system's number of the thread that owns a lock of the kind `doors_lock_owned`, such as a `Mutex`; 0: it is free.
int32_t doors_owner(const void *_Nonnull lock);
