#define _GNU_SOURCE
#include "Dispatch.h"
#include <string.h>

#ifdef __linux__

USE(uint64_t, dispatch_time, uint64_t, int64_t)
USE(uint64_t, dispatch_walltime, const void *, int64_t)
USE(void, dispatch_retain, object)
USE(void, dispatch_release, object)
USE(object, dispatch_group_create, void)
USE(object, dispatch_get_global_queue, intptr_t, uintptr_t)

// Work

struct doors_work {
    doors_function function;
    void *context;
    block block, kept;
    object group;
};

// Source: the public specification of blocks, Block-ABI-Apple, "High Level".
struct block_layout {
    void *class;
    int32_t flags, reserved;
    void *invocation;
};

doors_work *doors_make_work(doors_function function, void *context, block block) {
    doors_work *work = calloc(1, sizeof *work);
    work->function = function;
    work->context = context;
    if (block) work->block = (__typeof__(block))_Block_copy((void *)block);
    return work;
}

void *doors_invocation(const void *block) { return ((const struct block_layout *)block)->invocation; }

static bool is_item(const void *block) { return doors_invocation(block) == doors_queues.item_invocation; }

void doors_keep(doors_work *work, void *item) { work->kept = (block)_Block_copy(item); }

void *doors_work_item(doors_work *work) {
    return work->block && is_item((void *)work->block) ? (void *)work->block : NULL;
}

void doors_changed(doors_wait kind, object object) {
    doors_session *session = doors_entered;
    if (session) ASK(session, change(session->owner, kind, object));
}

static void run_block(void *context) {
    block block = (__typeof__(block))context;
    block();
    if (is_item(context)) doors_changed(doors_wait_item, context);
}

static void run_work(void *context) {
    doors_work *work = context;
    if (work->block) run_block((void *)work->block);
    else work->function(work->context);
}

void doors_work_run(doors_work *work, object queue, bool is_barrier) {
    doors_perform(doors_entered, queue, is_barrier, run_work, work);
    doors_work_drop(work);
}

void doors_work_drop(doors_work *work) {
    if (work->block) _Block_release((void *)work->block);
    if (work->kept) _Block_release((void *)work->kept);
    if (work->group) {
        dispatch_group_leave(work->group);
        real_dispatch_release()(work->group);
    }
    free(work);
}

typedef struct {
    doors_session *session;
    doors_function function;
    void *context;
} opened_call;

static void call_opened(void *context) {
    opened_call *call = context;
    doors_session *before = doors_enter(call->session);
    call->function(call->context);
    doors_enter(before);
}

// 9. Sync

REPLACE(void, dispatch_sync_f, object queue, void *context, doors_function function) {
    doors_session *session = with(doors_sync);
    if (session) ASK(session, sync(session->owner, queue, false, function, context));
    else real_dispatch_sync_f()(queue, context, function);
}

REPLACE(void, dispatch_barrier_sync_f, object queue, void *context, doors_function function) {
    doors_session *session = with(doors_sync);
    if (session) ASK(session, sync(session->owner, queue, true, function, context));
    else real_dispatch_barrier_sync_f()(queue, context, function);
}

REPLACE(void, dispatch_sync, object queue, block block) {
    if (with(doors_sync)) dispatch_sync_f(queue, (void *)block, run_block);
    else real_dispatch_sync()(queue, block);
}

REPLACE(void, dispatch_barrier_sync, object queue, block block) {
    if (with(doors_sync)) dispatch_barrier_sync_f(queue, (void *)block, run_block);
    else real_dispatch_barrier_sync()(queue, block);
}

REPLACE(void, dispatch_async_and_wait_f, object queue, void *context, doors_function function) {
    if (with(doors_sync)) dispatch_sync_f(queue, context, function);
    else real_dispatch_async_and_wait_f()(queue, context, function);
}

REPLACE(void, dispatch_async_and_wait, object queue, block block) {
    if (with(doors_sync)) dispatch_sync(queue, block);
    else real_dispatch_async_and_wait()(queue, block);
}

REPLACE(void, dispatch_barrier_async_and_wait_f, object queue, void *context, doors_function function) {
    if (with(doors_sync)) dispatch_barrier_sync_f(queue, context, function);
    else real_dispatch_barrier_async_and_wait_f()(queue, context, function);
}

REPLACE(void, dispatch_barrier_async_and_wait, object queue, block block) {
    if (with(doors_sync)) dispatch_barrier_sync(queue, block);
    else real_dispatch_barrier_async_and_wait()(queue, block);
}

// Whether the queue is that of Swift's own pool: it has a place for each processor, and tasks outside may hold all of them.
static bool is_pool(object queue) { return !strcmp(doors_label(queue), "Swift global concurrent queue"); }

void doors_perform(doors_session *session, object queue, bool is_barrier, doors_function function, void *context) {
    doors_thread_place before = doors_where;
    doors_where.innermost = queue;
    doors_where.is_in_main |= is_main(queue);
    opened_call call = {session, function, context};
    doors_session *outer = doors_enter(NULL);
    // Another queue is idle, so that this runs it here and now.
    if (is_main(queue) || is_pool(queue)) call_opened(&call);
    else if (is_barrier) real_dispatch_barrier_sync_f()(queue, &call, call_opened);
    else real_dispatch_sync_f()(queue, &call, call_opened);
    doors_enter(outer);
    doors_where = before;
}

// 8. Blocks

void doors_enqueue(doors_session *session, object queue, bool is_barrier, int64_t delay, doors_work *work) {
    stop(session);
    ASK(session, enqueue(session->owner, queue, is_barrier, delay, work));
}

REPLACE(void, dispatch_async, object queue, block block) {
    doors_session *session = driving(doors_blocks);
    if (session) doors_enqueue(session, queue, false, 0, doors_make_work(NULL, NULL, block));
    else real_dispatch_async()(queue, block);
}

REPLACE(void, dispatch_async_f, object queue, void *context, doors_function function) {
    doors_session *session = driving(doors_blocks);
    if (session) doors_enqueue(session, queue, false, 0, doors_make_work(function, context, NULL));
    else real_dispatch_async_f()(queue, context, function);
}

REPLACE(void, dispatch_barrier_async, object queue, block block) {
    doors_session *session = driving(doors_blocks);
    if (session) doors_enqueue(session, queue, true, 0, doors_make_work(NULL, NULL, block));
    else real_dispatch_barrier_async()(queue, block);
}

REPLACE(void, dispatch_barrier_async_f, object queue, void *context, doors_function function) {
    doors_session *session = driving(doors_blocks);
    if (session) doors_enqueue(session, queue, true, 0, doors_make_work(function, context, NULL));
    else real_dispatch_barrier_async_f()(queue, context, function);
}

// Nanoseconds from the step's present to a time of Dispatch. Source: dispatch/time.h; a wall time is negative.
int64_t doors_duration(uint64_t time) {
    if (time == 0) return 0;
    if (time == UINT64_MAX) return -1;
    int64_t duration;
    if (time >> 62 == 3) duration = (int64_t)(real_dispatch_walltime()(NULL, 0) - time);
    else duration = (int64_t)(time - real_dispatch_time()(time & (UINT64_C(1) << 63), 0));
    return duration > 0 ? duration : 0;
}

int64_t doors_sleep_duration(uint64_t time) {
    int64_t duration = doors_duration(time);
    return duration < 0 ? INT64_MAX : duration;
}

static void enqueue_later(doors_session *session, uint64_t time, object queue, doors_work *work) {
    int64_t delay = doors_duration(time);
    if (delay < 0) doors_work_drop(work);  // never, as Dispatch has it
    else doors_enqueue(session, queue, false, delay, work);
}

REPLACE(void, dispatch_after, uint64_t time, object queue, block block) {
    doors_session *session = driving(doors_blocks);
    if (session) enqueue_later(session, time, queue, doors_make_work(NULL, NULL, block));
    else real_dispatch_after()(time, queue, block);
}

// 7. A sleep is a job, as the argument of a function of the runtime.
REPLACE(void, dispatch_after_f, uint64_t time, object queue, void *context, doors_function function) {
    doors_session *sleeping = is_in(doors_concurrency, (uintptr_t)function) ? with(doors_sleeps) : NULL;
    if (sleeping) return doors_sleep(sleeping, context, doors_sleep_duration(time));
    doors_session *session = driving(doors_blocks);
    if (session) enqueue_later(session, time, queue, doors_make_work(function, context, NULL));
    else real_dispatch_after_f()(time, queue, context, function);
}

doors_work *doors_in_group(object group, doors_work *work) {
    doors_enter_group(group);
    real_dispatch_retain()(group);
    work->group = group;
    return work;
}

typedef struct {
    indexed_block block;
    size_t index;
} indexed_call;

static void run_index(void *context) {
    indexed_call *call = context;
    call->block(call->index);
    free(call);
}

// The caller must not continue before all have ended, not even at the end: they use its stack.
REPLACE(void, dispatch_apply, size_t count, void *queue, indexed_block block) {
    doors_session *session = driving(doors_blocks);
    bool can_wait = false;
    if (session) ASK(session, can_wait(session->owner) ? (can_wait = true) : 0);
    if (!can_wait) return real_dispatch_apply()(count, queue, block);
    object group = real_dispatch_group_create()();
    for (size_t index = 0; index < count; index++) {
        indexed_call *call = malloc(sizeof *call);
        *call = (indexed_call){block, index};
        doors_work *work = doors_in_group(group, doors_make_work(run_index, call, NULL));
        doors_enqueue(session, queue ? queue : real_dispatch_get_global_queue()(0, 0), false, 0, work);
    }
    while (!doors_is_open(doors_wait_group, group)) ASK(session, wait(session->owner, doors_wait_group, group, -1));
    real_dispatch_release()(group);
}

#endif
