#define _GNU_SOURCE
#include "Dispatch.h"

#ifdef __linux__

#include <link.h>

USE(void, dispatch_retain, object)
USE(void, dispatch_release, object)
USE(object, dispatch_get_global_queue, intptr_t, uintptr_t)
USE(void *, dispatch_queue_get_specific, object, const void *)
USE(void *, dispatch_get_context, object)
USE(__attribute__((swiftcall)) void, swift_job_deallocate, void *, void *)

doors_shared doors_queues;
doors_library doors_dispatch, doors_concurrency;
_Thread_local doors_thread_place doors_where;
static void *serial_class, *concurrent_class, *global_class;

static bool is_on_main_actor(void) {
    doors_session *session = doors_entered;
    return session && session->main.identity && doors_current_executor().identity == session->main.identity;
}

bool doors_is_on_main(void) { return doors_where.is_in_main || is_on_main_actor(); }

static bool is_innermost_main(void) {
    return doors_where.innermost ? is_main(doors_where.innermost) : is_on_main_actor();
}

// 13. The main queue

// Whether it is the main queue, and the thread holds it.
static bool holds(object queue) { return with(doors_place) && is_main(queue) && doors_is_on_main(); }

REPLACE(void, dispatch_assert_queue, object queue) {
    if (holds(queue)) return;
    real_dispatch_assert_queue()(queue);
}

REPLACE(void, dispatch_assert_queue_barrier, object queue) {
    if (holds(queue)) return;
    real_dispatch_assert_queue_barrier()(queue);
}

REPLACE(void, dispatch_assert_queue_not, object queue) {
    if (holds(queue)) __builtin_trap();
    real_dispatch_assert_queue_not()(queue);
}

REPLACE(void *, dispatch_get_specific, const void *key) {
    if (with(doors_place) && is_innermost_main()) return real_dispatch_queue_get_specific()(doors_queues.main_queue, key);
    return real_dispatch_get_specific()(key);
}

REPLACE(const char *, dispatch_queue_get_label, void *queue) {
    if (!queue && with(doors_place) && is_innermost_main()) queue = doors_queues.main_queue;
    return real_dispatch_queue_get_label()(queue);
}

// 14. What isn't driven

// Reports what the code does, and shuts the doors: what the original does for it, with queues of its own, is real.
IN_CALLER doors_session *leave(const char *deed) {
    if (with(doors_leaving)) doors_leave(deed);
    return doors_enter(NULL);
}

REPLACE(void *, dispatch_queue_create_with_target, const char *label, void *attribute, void *target) {
    void *queue = real_dispatch_queue_create_with_target()(label, attribute, target);
    doors_session *session = target ? with(doors_blocks) : NULL;
    if (session) ASK(session, create_queue(session->owner, queue, target));
    return queue;
}

// 7. Sleeps with a tolerance

// The timer that the runtime makes on this thread, and its time.
static _Thread_local struct {
    object source;
    uint64_t time;
} timer;

// What the runtime keeps with a timer. Source: swift/stdlib/public/Concurrency/DispatchGlobalExecutor.cpp, `struct __swift_job_source`.
typedef struct {
    object source;
    void *job;
} timed_job;

REPLACE(void, dispatch_source_set_timer, object source, uint64_t time, uint64_t interval, uint64_t leeway) {
    if (timer.source == source) {
        timer.time = time;
        time = UINT64_MAX;  // never
    }
    real_dispatch_source_set_timer()(source, time, interval, leeway);
}

// Lets the timer go, and gives its job to the simulation.
REPLACE(void, dispatch_activate, object object) {
    doors_session *session = timer.source == object ? with(doors_sleeps) : NULL;
    if (!session) return real_dispatch_activate()(object);
    int64_t delay = doors_sleep_duration(timer.time);
    timer.source = NULL;
    timed_job *timed = real_dispatch_get_context()(object);
    void *job = timed->job;
    doors_enter(NULL);
    real_swift_job_deallocate()(job, timed);
    real_dispatch_activate()(object);
    real_dispatch_release()(object);
    doors_enter(session);
    doors_sleep(session, job, delay);
}

REPLACE(void *, dispatch_source_create, const void *type, uintptr_t handle, uintptr_t mask, void *queue) {
    if (is_called_by(doors_concurrency) && with(doors_sleeps)) {
        return timer.source = real_dispatch_source_create()(type, handle, mask, queue);
    }
    doors_session *before = leave("made a DispatchSource, which isn't driven");
    void *result = real_dispatch_source_create()(type, handle, mask, queue);
    doors_enter(before);
    return result;
}

REPLACE(void *, dispatch_io_create, uintptr_t type, int descriptor, object queue, void *cleanup) {
    doors_session *before = leave("made a DispatchIO, which isn't driven");
    void *result = real_dispatch_io_create()(type, descriptor, queue, cleanup);
    doors_enter(before);
    return result;
}

REPLACE(void *, dispatch_io_create_with_path, uintptr_t type, const char *path, int flags, int mode, object queue, void *cleanup) {
    doors_session *before = leave("made a DispatchIO, which isn't driven");
    void *result = real_dispatch_io_create_with_path()(type, path, flags, mode, queue, cleanup);
    doors_enter(before);
    return result;
}

REPLACE(void *, dispatch_io_create_with_io, uintptr_t type, void *io, object queue, void *cleanup) {
    doors_session *before = leave("made a DispatchIO, which isn't driven");
    void *result = real_dispatch_io_create_with_io()(type, io, queue, cleanup);
    doors_enter(before);
    return result;
}

REPLACE(void, dispatch_read, int descriptor, size_t length, object queue, void *handler) {
    doors_session *before = leave("called DispatchIO.read, which isn't driven");
    real_dispatch_read()(descriptor, length, queue, handler);
    doors_enter(before);
}

REPLACE(void, dispatch_write, int descriptor, void *data, object queue, void *handler) {
    doors_session *before = leave("called DispatchIO.write, which isn't driven");
    real_dispatch_write()(descriptor, data, queue, handler);
    doors_enter(before);
}

REPLACE(void, dispatch_suspend, object object) {
    doors_session *before = leave("suspended a queue or a source, which isn't driven");
    real_dispatch_suspend()(object);
    doors_enter(before);
}

REPLACE(void *, dispatch_queue_attr_make_initially_inactive, void *attribute) {
    doors_session *before = leave("made a queue that is inactive at first, which isn't driven");
    void *result = real_dispatch_queue_attr_make_initially_inactive()(attribute);
    doors_enter(before);
    return result;
}

// Libraries

static int note_library(struct dl_phdr_info *image, size_t size, void *context) {
    doors_library *library = context;
    uintptr_t known = library->start;
    for (int index = 0; index < image->dlpi_phnum; index++) {
        const ElfW(Phdr) *part = image->dlpi_phdr + index;
        uintptr_t start = image->dlpi_addr + part->p_vaddr;
        if (part->p_type != PT_LOAD || known < start || known >= start + part->p_memsz) continue;
        *library = (doors_library){start, start + part->p_memsz};
        return 1;
    }
    return 0;
}

void doors_find(doors_library *library) { dl_iterate_phdr(note_library, library); }

// Before any session, as all of the above.
__attribute__((constructor)) static void find_libraries(void) {
    doors_dispatch.start = (uintptr_t)real_dispatch_retain();
    doors_concurrency.start = (uintptr_t)real_swift_job_deallocate();
    doors_find(&doors_dispatch);
    doors_find(&doors_concurrency);
}

// Queues

static void *class_of(object object) { return *(void **)object; }

doors_queue doors_kind(object queue) {
    if (is_main(queue)) return doors_queue_main;
    void *class = class_of(queue);
    if (class == global_class) return doors_queue_global;
    if (class == serial_class) return doors_queue_serial;
    return class == concurrent_class ? doors_queue_concurrent : doors_queue_unknown;
}

const char *doors_label(object queue) {
    const char *label = real_dispatch_queue_get_label()(queue);
    return label ? label : "";
}

const char *doors_current_label(void) {
    const char *label = dispatch_queue_get_label(NULL);
    return label ? label : "";
}

void doors_retain(object object) { real_dispatch_retain()(object); }
void doors_release(object object) { real_dispatch_release()(object); }

// The class of a new queue; NULL if another one has another class.
static void *new_class(void *attribute) {
    object one = real_dispatch_queue_create_with_target()("one", attribute, NULL);
    object other = real_dispatch_queue_create_with_target()("other", attribute, NULL);
    void *class = class_of(one) == class_of(other) ? class_of(one) : NULL;
    doors_release(one);
    doors_release(other);
    return class;
}

const char *doors_install_queues(doors_queue_callbacks given) {
    doors_queues.main_queue = dlsym(RTLD_DEFAULT, "_dispatch_main_q");
    void *concurrent = dlsym(RTLD_DEFAULT, "_dispatch_queue_attr_concurrent");
    if (!doors_queues.main_queue || !concurrent) return "the main queue of libdispatch";
    serial_class = new_class(NULL);
    concurrent_class = new_class(concurrent);
    global_class = class_of(real_dispatch_get_global_queue()(0, 0));
    if (!serial_class || !concurrent_class || serial_class == concurrent_class || global_class == serial_class ||
        global_class == concurrent_class || class_of(doors_queues.main_queue) == global_class)
        return "a way to tell the kinds of queues apart";
    doors_queues.callbacks = given;
    doors_learn_items();
    return NULL;
}

#else

// Not tried anywhere else yet: the doors stay shut and say so.
const char *doors_install_queues(doors_queue_callbacks given) { return "support for this platform"; }
void *doors_work_item(doors_work *work) { return 0; }
void doors_work_run(doors_work *work, doors_object queue, bool is_barrier) {}
void doors_work_drop(doors_work *work) {}
void doors_perform(doors_session *session, doors_object queue, bool is_barrier, doors_function function, void *context) {
    function(context);
}
doors_queue doors_kind(doors_object queue) { return doors_queue_unknown; }
const char *doors_label(doors_object queue) { return ""; }
const char *doors_current_label(void) { return ""; }
void doors_retain(doors_object object) {}
void doors_release(doors_object object) {}
bool doors_is_open(doors_wait kind, doors_object object) { return true; }
bool doors_pass(doors_wait kind, doors_object object) { return true; }
bool doors_is_on_main(void) { return false; }

#endif
