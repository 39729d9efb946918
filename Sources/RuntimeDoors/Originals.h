#pragma once

// How functions of the Swift runtime, of Dispatch and of the C library are found, those that are replaced here among them.

#include <dlfcn.h>
#include <stdatomic.h>

// The calling convention of Swift.
#define SWIFT __attribute__((swiftcall))

// The session whose doors are open on this thread. No function returns it here: locks ask for it in each call of the program. For
// that, the program finds it without a call, too.
extern _Thread_local doors_session *doors_entered __attribute__((tls_model("initial-exec")));

// Defines `real_name()`, which returns a function that was found when the program started, so that no step waits for the loader's lock;
// or at its first call, which may come before that. NULL: there is none. The result may begin with a calling convention.
#define FOUND(result, name, look_up, ...)                                                \
    typedef result name##_function(__VA_ARGS__);                                         \
    static _Atomic(name##_function *) known_##name;                                      \
    static name##_function *real_##name(void) {                                          \
        name##_function *found = KNOWN(name);                                            \
        if (!found) {                                                                    \
            found = (name##_function *)(look_up);                                        \
            atomic_store_explicit(&known_##name, found, memory_order_relaxed);           \
        }                                                                                \
        return found;                                                                    \
    }                                                                                    \
    __attribute__((constructor)) static void find_##name(void) { real_##name(); }

// The same where it was found already; NULL: it wasn't.
#define KNOWN(name) atomic_load_explicit(&known_##name, memory_order_relaxed)

// A function that is only called.
#define USE(result, name, ...) FOUND(result, name, dlsym(RTLD_DEFAULT, #name), __VA_ARGS__)

// A function that is replaced here. A sanitizer has a definition of its own, which must be called instead of the original: it would
// not know what happens before what.
#define REPLACE(result, name, ...)                                                                       \
    extern result __interceptor_##name(__VA_ARGS__) __attribute__((weak));                               \
    FOUND(result, name, __interceptor_##name ? (void *)__interceptor_##name : dlsym(RTLD_NEXT, #name), __VA_ARGS__) \
    result name(__VA_ARGS__)
