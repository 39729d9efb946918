#define _GNU_SOURCE
#include "Dispatch.h"

#ifdef __linux__

#include <pthread.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

// Ways out of a simulation: each is reported, and then taken.

// A sanitizer has a definition of its own, which must be called instead of the C library's: it would not know the thread.
typedef int create_thread(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
extern create_thread __interceptor_pthread_create __attribute__((weak));

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument) {
    doors_leave("started a thread");
    create_thread *real = __interceptor_pthread_create;
    if (!real) real = (create_thread *)dlsym(RTLD_NEXT, "pthread_create");
    return real(thread, attributes, start, argument);
}

int connect(int socket, const struct sockaddr *address, socklen_t length) {
    doors_leave("opened a network connection");
    int (*real)(int, const struct sockaddr *, socklen_t) = dlsym(RTLD_NEXT, "connect");
    return real(socket, address, length);
}

// Foundation sleeps until its clock shows the time, so the time that is shown moves too. Dispatch sleeps while another thread is
// about to add to a queue. A sleep of zero only gives the processor to another thread; Foundation's locks do that while real threads
// hold them, which is no deed of the code.
#define LEAVE_FOR(nanoseconds)                                                                              \
    do {                                                                                                    \
        int64_t duration = (nanoseconds);                                                                   \
        if (duration == 0 || is_for_dispatch()) break;                                                      \
        doors_session *session = doors_leave("slept on its thread");                                        \
        if (session) atomic_fetch_add(&session->now, duration);                                             \
    } while (0)

int nanosleep(const struct timespec *time, struct timespec *rest) {
    LEAVE_FOR(time->tv_sec * INT64_C(1000000000) + time->tv_nsec);
    int (*real)(const struct timespec *, struct timespec *) = dlsym(RTLD_NEXT, "nanosleep");
    return real(time, rest);
}

int usleep(useconds_t microseconds) {
    LEAVE_FOR(microseconds * INT64_C(1000));
    int (*real)(useconds_t) = dlsym(RTLD_NEXT, "usleep");
    return real(microseconds);
}

unsigned sleep(unsigned seconds) {
    LEAVE_FOR(seconds * INT64_C(1000000000));
    unsigned (*real)(unsigned) = dlsym(RTLD_NEXT, "sleep");
    return real(seconds);
}

const char *doors_missing_exit(void) {
    if (dlsym(RTLD_DEFAULT, "pthread_create") != (void *)pthread_create) return "pthread_create";
    if (dlsym(RTLD_DEFAULT, "connect") != (void *)connect) return "connect";
    if (dlsym(RTLD_DEFAULT, "nanosleep") != (void *)nanosleep) return "nanosleep";
    if (dlsym(RTLD_DEFAULT, "usleep") != (void *)usleep) return "usleep";
    if (dlsym(RTLD_DEFAULT, "sleep") != (void *)sleep) return "sleep";
    return NULL;
}

#endif
