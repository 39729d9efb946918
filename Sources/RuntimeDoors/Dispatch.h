#pragma once

// Shared by the files with doors for queues.

#include "QueueDoors.h"

#ifdef __linux__

#include "Originals.h"
#include <stddef.h>
#include <stdlib.h>

typedef void (^block)(void);
typedef void (^indexed_block)(size_t);
typedef void *object;

extern void *_Block_copy(const void *);
extern void _Block_release(const void *);

// Written once before a session has doors for queues; a session is handed to other threads only after that.
typedef struct {
    doors_queue_callbacks callbacks;
    object main_queue;
    void *item_invocation;
} doors_shared;
extern doors_shared doors_queues;

/// The memory of a library.
typedef struct {
    uintptr_t start, end;
} doors_library;
extern doors_library doors_dispatch, doors_concurrency;

static inline bool is_in(doors_library library, uintptr_t address) {
    return address >= library.start && address < library.end;
}

/// Completes a library that begins with the address of one of its functions.
void doors_find(doors_library *);

// Checks whether other libraries find our function as well, which a look-up of the original wouldn't show.
#define CHECK(name) if (dlsym(RTLD_DEFAULT, #name) != (void *)name) return #name

// Always inlined, so that the address is that to which the replaced function returns.
#define IN_CALLER static inline __attribute__((always_inline))

IN_CALLER bool is_called_by(doors_library library) { return is_in(library, (uintptr_t)__builtin_return_address(0)); }

// Dispatch calls its own functions by their names, too, such as to wake a thread of its pool. Such a call isn't a step of
// the code, and depends on real threads. (At a function's end the call is a jump, which looks like one of the code and always
// comes.)
IN_CALLER bool is_for_dispatch(void) { return is_called_by(doors_dispatch); }

IN_CALLER doors_session *with(uint32_t door) {
    if (is_for_dispatch()) return NULL;
    doors_session *session = doors_entered;
    return session && (session->open & door) ? session : NULL;
}

// The session that drives blocks; where tasks are driven and queues aren't, reports the block.
IN_CALLER doors_session *driving(uint32_t door) {
    doors_session *session = with(door);
    if (!session && with(doors_leaving)) doors_leave("put a block into a queue, which isn't driven");
    return session;
}

// Calls the simulation, with the doors shut.
#define ASK(session, call)                              \
    do {                                                \
        doors_session *before = doors_enter(NULL);      \
        doors_queues.callbacks.call;                                 \
        doors_enter(before);                            \
    } while (0)

static inline bool is_main(object queue) { return queue == doors_queues.main_queue; }

// Where a thread is, among queues that the simulation has entered.
typedef struct {
    object innermost;
    bool is_in_main;
} doors_thread_place;
extern _Thread_local doors_thread_place doors_where;

static inline void stop(doors_session *session) { ASK(session, stop(session->owner)); }

/// Puts a block or a function into a queue, after a stop.
void doors_enqueue(doors_session *, object queue, bool is_barrier, int64_t delay, doors_work *);
doors_work *doors_make_work(doors_function, void *context, block);
/// Makes work a member of a group, which it leaves when it is freed.
doors_work *doors_in_group(object group, doors_work *);
/// Lets work keep an item.
void doors_keep(doors_work *, void *item);
/// The function that a block runs; all work items have the same one.
void *doors_invocation(const void *block);
void doors_learn_items(void);
/// Tells the simulation that a count may have changed.
void doors_changed(doors_wait, object);
/// Nanoseconds from the step's present to a time of Dispatch; -1: never.
int64_t doors_duration(uint64_t time);
/// The same for a sleep, which has an end.
int64_t doors_sleep_duration(uint64_t time);
/// Enters a group without a stop.
void doors_enter_group(object group);
void dispatch_group_leave(object group);

#endif
