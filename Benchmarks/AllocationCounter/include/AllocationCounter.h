#pragma once
#include <stdbool.h>
#include <stdint.h>

/// What the process has allocated since it started, as far as it is counted.
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

/// What was counted so far; blocks freed while counting that were allocated before make `live_bytes` smaller.
allocation_count allocation_counter_read(void);
