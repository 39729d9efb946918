// The program's own `malloc` and its family stand in front of glibc's, for every library in the process, and count.
#include "AllocationCounter.h"

#include <stdatomic.h>
#include <stddef.h>

static atomic_bool is_counting;
static atomic_int_fast64_t allocations;
static atomic_int_fast64_t live_bytes;

void allocation_counter_set_counting(bool counting) { atomic_store(&is_counting, counting); }

allocation_count allocation_counter_read(void) {
    return (allocation_count){atomic_load(&allocations), atomic_load(&live_bytes)};
}

#if defined(__GLIBC__)
#include <errno.h>
#include <malloc.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

bool allocation_counter_works(void) { return true; }

static void *counted(void *block) {
    if (block && atomic_load_explicit(&is_counting, memory_order_relaxed)) {
        atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&live_bytes, (int_fast64_t)malloc_usable_size(block), memory_order_relaxed);
    }
    return block;
}

static void uncount(void *block) {
    if (block && atomic_load_explicit(&is_counting, memory_order_relaxed))
        atomic_fetch_sub_explicit(&live_bytes, (int_fast64_t)malloc_usable_size(block), memory_order_relaxed);
}

void *malloc(size_t size) { return counted(__libc_malloc(size)); }

void *calloc(size_t count, size_t size) { return counted(__libc_calloc(count, size)); }

void *realloc(void *block, size_t size) {
    // Read the old block's size first: after the call the block may be gone.
    size_t old = block ? malloc_usable_size(block) : 0;
    void *moved = __libc_realloc(block, size);
    if ((moved || size == 0) && atomic_load_explicit(&is_counting, memory_order_relaxed))
        atomic_fetch_sub_explicit(&live_bytes, (int_fast64_t)old, memory_order_relaxed);
    return counted(moved);
}

void *memalign(size_t alignment, size_t size) { return counted(__libc_memalign(alignment, size)); }

void *aligned_alloc(size_t alignment, size_t size) { return counted(__libc_memalign(alignment, size)); }

int posix_memalign(void **block, size_t alignment, size_t size) {
    if (alignment % sizeof(void *) != 0 || (alignment & (alignment - 1)) != 0) return EINVAL;
    *block = counted(__libc_memalign(alignment, size));
    return *block ? 0 : ENOMEM;
}

void free(void *block) {
    uncount(block);
    __libc_free(block);
}
#else
bool allocation_counter_works(void) { return false; }
#endif
