#define _GNU_SOURCE
#include "Dispatch.h"

#ifdef __linux__

// 10. Groups

static void count(doors_session *session, object object, intptr_t change, bool is_new) {
    if (session) ASK(session, count(session->owner, object, change, is_new));
}

REPLACE(object, dispatch_group_create, void) {
    object group = real_dispatch_group_create()();
    count(with(doors_groups), group, 0, true);
    return group;
}

REPLACE(void, dispatch_group_enter, object group) {
    doors_session *session = with(doors_groups);
    if (session) stop(session);
    doors_enter_group(group);
}

void doors_enter_group(object group) {
    real_dispatch_group_enter()(group);
    count(with(doors_groups), group, 1, false);
}

REPLACE(void, dispatch_group_leave, object group) {
    doors_session *session = with(doors_groups);
    if (session) stop(session);
    real_dispatch_group_leave()(group);
    if (session) doors_changed(doors_wait_group, group);
}

REPLACE(void, dispatch_group_async, object group, object queue, block block) {
    doors_session *session = driving(doors_groups);
    if (session) doors_enqueue(session, queue, false, 0, doors_in_group(group, doors_make_work(NULL, NULL, block)));
    else real_dispatch_group_async()(group, queue, block);
}

REPLACE(void, dispatch_group_async_f, object group, object queue, void *context, doors_function function) {
    doors_session *session = driving(doors_groups);
    if (session) doors_enqueue(session, queue, false, 0, doors_in_group(group, doors_make_work(function, context, NULL)));
    else real_dispatch_group_async_f()(group, queue, context, function);
}

static void notify(doors_session *session, doors_wait kind, object object, void *queue, doors_work *work) {
    stop(session);
    ASK(session, notify(session->owner, kind, object, queue, work));
}

REPLACE(void, dispatch_group_notify, object group, object queue, block block) {
    doors_session *session = driving(doors_groups);
    if (session) notify(session, doors_wait_group, group, queue, doors_make_work(NULL, NULL, block));
    else real_dispatch_group_notify()(group, queue, block);
}

REPLACE(void, dispatch_group_notify_f, object group, object queue, void *context, doors_function function) {
    doors_session *session = driving(doors_groups);
    if (session) notify(session, doors_wait_group, group, queue, doors_make_work(function, context, NULL));
    else real_dispatch_group_notify_f()(group, queue, context, function);
}

static intptr_t await_object(doors_session *session, doors_wait kind, object object, uint64_t time) {
    bool is_over = false;
    int64_t limit = doors_duration(time);
    ASK(session, wait(session->owner, kind, object, limit) ? (is_over = true) : 0);
    return is_over ? 0 : 1;
}

REPLACE(intptr_t, dispatch_group_wait, object group, uint64_t time) {
    doors_session *session = with(doors_groups);
    return session ? await_object(session, doors_wait_group, group, time) : real_dispatch_group_wait()(group, time);
}

// 11. Semaphores

REPLACE(object, dispatch_semaphore_create, intptr_t value) {
    object semaphore = real_dispatch_semaphore_create()(value);
    if (semaphore) count(with(doors_semaphores), semaphore, value, true);
    return semaphore;
}

REPLACE(intptr_t, dispatch_semaphore_wait, object semaphore, uint64_t time) {
    doors_session *session = with(doors_semaphores);
    return session ? await_object(session, doors_wait_semaphore, semaphore, time) : real_dispatch_semaphore_wait()(semaphore, time);
}

REPLACE(intptr_t, dispatch_semaphore_signal, object semaphore) {
    doors_session *session = with(doors_semaphores);
    if (session) stop(session);
    intptr_t result = real_dispatch_semaphore_signal()(semaphore);
    if (session) doors_changed(doors_wait_semaphore, semaphore);
    return result;
}

bool doors_is_open(doors_wait kind, object object) {
    if (kind == doors_wait_group) return real_dispatch_group_wait()(object, 0) == 0;
    if (real_dispatch_semaphore_wait()(object, 0) != 0) return false;
    real_dispatch_semaphore_signal()(object);
    return true;
}

bool doors_pass(doors_wait kind, object object) {
    return kind == doors_wait_group ? doors_is_open(kind, object) : real_dispatch_semaphore_wait()(object, 0) == 0;
}

// 12. Work items

enum { barrier_flag = 1 };  // dispatch/block.h, DISPATCH_BLOCK_BARRIER

static void *note_item(void *item, unsigned long flags) {
    doors_session *session = with(doors_items);
    if (session) ASK(session, create_item(session->owner, item, flags & barrier_flag));
    return item;
}

REPLACE(void *, dispatch_block_create, unsigned long flags, block block) {
    return note_item(real_dispatch_block_create()(flags, block), flags);
}

REPLACE(void *, dispatch_block_create_with_qos_class, unsigned long flags, unsigned quality, int priority, block block) {
    return note_item(real_dispatch_block_create_with_qos_class()(flags, quality, priority, block), flags);
}

void doors_learn_items(void) {
    block item = (block)real_dispatch_block_create()(0, ^{});
    doors_queues.item_invocation = doors_invocation((void *)item);
    _Block_release((void *)item);
}

REPLACE(void, dispatch_block_notify, block item, object queue, block block) {
    doors_session *session = driving(doors_items);
    if (!session) return real_dispatch_block_notify()(item, queue, block);
    doors_work *work = doors_make_work(NULL, NULL, block);
    // So that no other item gets its address meanwhile.
    doors_keep(work, (void *)item);
    notify(session, doors_wait_item, (void *)item, queue, work);
}

REPLACE(intptr_t, dispatch_block_wait, block item, uint64_t time) {
    doors_session *session = with(doors_items);
    return session ? await_object(session, doors_wait_item, (void *)item, time) : real_dispatch_block_wait()(item, time);
}

REPLACE(void, dispatch_block_cancel, block item) {
    doors_session *session = with(doors_items);
    if (session) stop(session);
    real_dispatch_block_cancel()(item);
}

#endif
