#pragma once

#include "RuntimeDoors.h"

// Functions of Dispatch, replaced as those in `RuntimeDoors.h` are: libswiftDispatch and Foundation call them by name, and so
// come here. Each is open on a thread that runs a step of a simulation that drives queues. While a door calls the simulation, all
// doors are shut on that thread, so that the simulation's own use of Dispatch stays real.
//
// 8. Blocks: `dispatch_async`, `dispatch_after`, `dispatch_apply`, with the barriers' and the `_f` forms
//    A block becomes a step of its own, which runs inside the real `dispatch_sync_f` of its queue: the current queue, its label
//    and its specific values are right. The kind of a queue is found by comparing its class, the first word of each object, with that
//    of queues made here. If Swift called Dispatch by another way, blocks would leave, and the check would fail.
// 9. Sync: `dispatch_sync`, `dispatch_async_and_wait`, with the barriers' and the `_f` forms
//    The thread stops until it is its turn in the queue. If a call came by another way, it would not wait for blocks that are
//    before it, and the check would fail.
// 10. Groups: `dispatch_group_create`, `_async`, `_enter`, `_leave`, `_notify`, `_wait`
//    The group counts as usual, and tells whether it is empty; the simulation handles the waiting. It counts along, to notice when
//    another thread leaves. If a call came by another way, a wait would block its thread, and the check would fail.
// 11. Semaphores: `dispatch_semaphore_create`, `_wait`, `_signal`
//    The same: the semaphore counts, the simulation lets threads wait and counts along.
// 12. Work items: `dispatch_block_create`, `_notify`, `_wait`
//    The simulation keeps which items are barriers and which have run; cancelling stays Dispatch's. If a call came by another
//    way, the notification would leave, and the check would fail.
// 13. The main queue: `dispatch_assert_queue`, `dispatch_get_specific`, `dispatch_queue_get_label`
//    Its blocks don't run on the main thread. These answer as if they did. If a call came by another way, a right
//    `dispatchPrecondition` would trap; the check asks first.
// 14. What isn't driven: `dispatch_source_create`, `dispatch_io_create`, `dispatch_read`, `dispatch_suspend` and others
//    Reports the call to the simulation, which fails, and lets it through; where queues aren't driven, a block that goes to one is
//    reported, too. If a call came by another way, what it starts would be noticed only when it comes back.
//
// A call that comes from Dispatch itself, such as to wake a thread of its pool, goes through: it isn't a step of the code.

enum {
    doors_blocks = 128,
    doors_sync = 256,
    doors_groups = 512,
    doors_semaphores = 1024,
    doors_items = 2048,
    doors_place = 4096,
};

/// A queue, a group, a semaphore or a work item.
typedef void *_Nonnull doors_object;
typedef void (*doors_function)(void *_Nullable context);

/// A block or a function that waits to run once.
typedef struct doors_work doors_work;

/// The kinds of objects that a thread may wait for.
typedef enum { doors_wait_semaphore, doors_wait_group, doors_wait_item } doors_wait;

/// The kinds of queues.
typedef enum {
    doors_queue_unknown, doors_queue_main, doors_queue_global, doors_queue_serial, doors_queue_concurrent
} doors_queue;

/// The callbacks of the doors to a simulation; times are in nanoseconds, -1: without end.
typedef struct {
    void (*_Nonnull enqueue)(void *_Nonnull owner, doors_object queue, bool is_barrier, int64_t delay, doors_work *_Nonnull);
    void (*_Nonnull sync)(void *_Nonnull owner, doors_object queue, bool is_barrier, doors_function _Nonnull, void *_Nullable context);
    void (*_Nonnull notify)(void *_Nonnull owner, doors_wait, doors_object, doors_object queue, doors_work *_Nonnull);
    /// Returns whether it is over.
    bool (*_Nonnull wait)(void *_Nonnull owner, doors_wait, doors_object, int64_t duration);
    /// Whether this thread can stop.
    bool (*_Nonnull can_wait)(void *_Nonnull owner);
    /// A call begins whose effect other steps may see.
    void (*_Nonnull stop)(void *_Nonnull owner);
    /// A signal, a leave or an item's end came.
    void (*_Nonnull change)(void *_Nonnull owner, doors_wait, doors_object);
    /// A semaphore or a group was made with a count, or entered.
    void (*_Nonnull count)(void *_Nonnull owner, doors_object, intptr_t change, bool is_new);
    void (*_Nonnull create_queue)(void *_Nonnull owner, doors_object queue, doors_object target);
    void (*_Nonnull create_item)(void *_Nonnull owner, doors_object item, bool is_barrier);
} doors_queue_callbacks;

/// Returns the name of what is missing; NULL: nothing is.
const char *_Nullable doors_install_queues(doors_queue_callbacks);

/// The work item that the work is, or the one that it runs; NULL: none.
void *_Nullable doors_work_item(doors_work *_Nonnull);
/// Runs work, frees it, and leaves its group.
void doors_work_run(doors_work *_Nonnull, doors_object queue, bool is_barrier);
/// Frees work that will not run.
void doors_work_drop(doors_work *_Nonnull);
/// Runs a function in a queue, with the doors of the session open.
void doors_perform(
    doors_session *_Nullable, doors_object queue, bool is_barrier, doors_function _Nonnull, void *_Nullable context);

doors_queue doors_kind(doors_object queue);
const char *_Nonnull doors_label(doors_object queue);
/// The label of the current queue, as the code sees it.
const char *_Nonnull doors_current_label(void);
void doors_retain(doors_object);
void doors_release(doors_object);

/// Whether a semaphore can be passed or a group is empty.
bool doors_is_open(doors_wait, doors_object);
/// Passes a semaphore, if that is possible now.
bool doors_pass(doors_wait, doors_object);
/// Whether this thread runs a block of the main queue or a job of the main actor.
bool doors_is_on_main(void);
