#define _GNU_SOURCE
#include "OneThread.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#define SWIFT __attribute__((swiftcall))

// The runtime's hooks, as in swift/include/swift/Runtime/Concurrency.h: `original` would have taken the job.
typedef SWIFT void enqueue_function(void *job, void *original);
typedef SWIFT void delay_function(uint64_t nanoseconds, void *job, void *original);
typedef SWIFT void deadline_function(
    int64_t seconds, int64_t nanoseconds, int64_t tolerance_seconds, int64_t tolerance_nanoseconds, int clock, void *job, void *original);

// Runs a job on an executor, which is two words; those of the pool are 0.
static SWIFT void (*run_job)(void *job, uintptr_t identity, uintptr_t implementation);

// A block, as in https://clang.llvm.org/docs/Block-ABI-Apple.html.
typedef struct block {
    void *isa;
    int32_t flags, reserved;
    void (*invoke)(struct block *);
} block;
extern block *_Block_copy(const block *);
extern void _Block_release(const block *);

// One of the two; the other is NULL.
typedef struct {
    void *job;
    block *block;
} work;

static pthread_t thread;
static work *ring;
static size_t first, count, capacity;

static void add(work added) {
    // With a second thread, no two runs would be the same.
    if (!pthread_equal(pthread_self(), thread)) abort();
    if (count == capacity) {
        size_t larger = capacity ? 2 * capacity : 1024;
        work *moved = malloc(larger * sizeof *moved);
        if (!moved) abort();
        for (size_t i = 0; i < count; i++) moved[i] = ring[(first + i) % capacity];
        free(ring);
        ring = moved, first = 0, capacity = larger;
    }
    ring[(first + count++) % capacity] = added;
}

static SWIFT void enqueue(void *job, void *original) { add((work){.job = job}); }
static SWIFT void enqueue_later(uint64_t nanoseconds, void *job, void *original) {}
static SWIFT void enqueue_at(
    int64_t seconds, int64_t nanoseconds, int64_t tolerance_seconds, int64_t tolerance_nanoseconds, int clock, void *job, void *original) {}

// Stands in front of Dispatch's function. All serial queues are one here.
void dispatch_async(void *queue, const block *block) { add((work){.block = _Block_copy(block)}); }

// Like a sleep, it never ends.
void dispatch_after(uint64_t when, void *queue, const block *block) {}

const char *one_thread_begin(void) {
    enqueue_function **at_once = dlsym(RTLD_DEFAULT, "swift_task_enqueueGlobal_hook");
    delay_function **later = dlsym(RTLD_DEFAULT, "swift_task_enqueueGlobalWithDelay_hook");
    deadline_function **at = dlsym(RTLD_DEFAULT, "swift_task_enqueueGlobalWithDeadline_hook");
    *(void **)&run_job = dlsym(RTLD_DEFAULT, "swift_job_run");
    if (!at_once) return "swift_task_enqueueGlobal_hook";
    if (!later) return "swift_task_enqueueGlobalWithDelay_hook";
    if (!at) return "swift_task_enqueueGlobalWithDeadline_hook";
    if (!run_job) return "swift_job_run";
    thread = pthread_self();
    *at_once = enqueue, *later = enqueue_later, *at = enqueue_at;
    return NULL;
}

void one_thread_run(void) {
    while (count > 0) {
        work next = ring[first];
        first = (first + 1) % capacity, count--;
        if (next.job) run_job(next.job, 0, 0);
        else next.block->invoke(next.block), _Block_release(next.block);
    }
}
