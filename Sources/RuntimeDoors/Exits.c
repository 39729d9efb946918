#define _GNU_SOURCE
#include "Dispatch.h"

#ifdef __linux__

#include <poll.h>
#include <pthread.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

// Ways out of a simulation: each is reported, and then taken.

REPLACE(int, pthread_create, pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument) {
    // Dispatch starts its own, for a first sleep for example; the code's blocks in its queues are reported themselves.
    if (!is_for_dispatch()) doors_leave("started a thread");
    return real_pthread_create()(thread, attributes, start, argument);
}

REPLACE(int, connect, int socket, const struct sockaddr *address, socklen_t length) {
    doors_leave("opened a network connection");
    return real_connect()(socket, address, length);
}

// A run loop's timer fires when nothing drives the run loop; a time of zero ends one.
REPLACE(int, timerfd_settime, int timer, int flags, const struct itimerspec *time, struct itimerspec *before) {
    if (time->it_value.tv_sec || time->it_value.tv_nsec) doors_leave("set a Timer of a run loop, which isn't driven");
    return real_timerfd_settime()(timer, flags, time, before);
}

// Foundation sleeps until its clock shows the time, so the time that is shown moves too. Dispatch sleeps while another thread is
// about to add to a queue. A sleep of zero only gives the processor to another thread; Foundation's locks do that while real threads
// hold them, so it isn't a step of the code.
#define LEAVE_FOR(nanoseconds)                                                                              \
    do {                                                                                                    \
        int64_t duration = (nanoseconds);                                                                   \
        if (duration == 0 || is_for_dispatch()) break;                                                      \
        doors_session *session = doors_leave("slept on its thread");                                        \
        if (session) atomic_fetch_add(&session->now, duration);                                             \
    } while (0)

static int64_t nanoseconds(const struct timespec *time) { return time->tv_sec * INT64_C(1000000000) + time->tv_nsec; }

REPLACE(int, nanosleep, const struct timespec *time, struct timespec *rest) {
    LEAVE_FOR(nanoseconds(time));
    return real_nanosleep()(time, rest);
}

REPLACE(int, clock_nanosleep, clockid_t clock, int flags, const struct timespec *time, struct timespec *rest) {
    // A deadline lies in the past of the real clock: what is left is counted from the time that is shown.
    struct timespec now = {0, 0};
    if (flags & TIMER_ABSTIME) clock_gettime(clock, &now);
    int64_t left = nanoseconds(time) - nanoseconds(&now);
    LEAVE_FOR(left > 0 ? left : 0);
    return real_clock_nanosleep()(clock, flags, time, rest);
}

REPLACE(int, usleep, useconds_t microseconds) {
    LEAVE_FOR(microseconds * INT64_C(1000));
    return real_usleep()(microseconds);
}

REPLACE(unsigned, sleep, unsigned seconds) {
    LEAVE_FOR(seconds * INT64_C(1000000000));
    return real_sleep()(seconds);
}

// Without anything to wait for these are sleeps.

REPLACE(int, poll, struct pollfd *files, nfds_t count, int milliseconds) {
    LEAVE_FOR(count == 0 && milliseconds > 0 ? milliseconds * INT64_C(1000000) : 0);
    return real_poll()(files, count, milliseconds);
}

REPLACE(int, select, int count, fd_set *reads, fd_set *writes, fd_set *problems, struct timeval *limit) {
    LEAVE_FOR(count == 0 && limit ? limit->tv_sec * INT64_C(1000000000) + limit->tv_usec * INT64_C(1000) : 0);
    return real_select()(count, reads, writes, problems, limit);
}

const char *doors_missing_exit(void) {
    CHECK(pthread_create);
    CHECK(connect);
    CHECK(timerfd_settime);
    CHECK(nanosleep);
    CHECK(clock_nanosleep);
    CHECK(usleep);
    CHECK(sleep);
    CHECK(poll);
    CHECK(select);
    return NULL;
}

#endif
