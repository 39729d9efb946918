#pragma once
#include <stdbool.h>
#include <stdint.h>

/// The process's counted allocations since it started.
typedef struct {
    /// Blocks allocated, freed ones included; a block that is resized counts again.
    int64_t allocations;
    /// Bytes allocated and not freed, as the allocator rounds them.
    int64_t live_bytes;
} allocation_count;

/// Whether allocations can be counted on this platform (with glibc they can).
bool allocation_counter_works(void);

/// Counts from now on, or no longer; not counting costs an allocation one load.
void allocation_counter_set_counting(bool counting);

/// Returns the counts so far; freeing a block that was allocated before the counting began makes `live_bytes` smaller.
allocation_count allocation_counter_read(void);
