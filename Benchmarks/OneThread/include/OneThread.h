#pragma once

// Runs the tasks of Swift's default pool and the blocks of Dispatch's serial queues on one thread, in the order in which they come,
// so that a program executes the same in each run. Time stands still: what sleeps goes on only if it is cancelled.

/// Takes the jobs of the pool from now on, all of this thread; returns the name of what the runtime lacks, or NULL.
const char *one_thread_begin(void);

/// Runs until nothing is left to run.
void one_thread_run(void);
