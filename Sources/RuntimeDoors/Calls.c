#define _GNU_SOURCE
#include "RuntimeDoors.h"

// The calls of a thread, and the names of the program's functions. The names are read from the program's file, since the images in
// memory may be unloaded meanwhile.

#if defined(__linux__) && defined(__GLIBC__)

#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// Written once; the file stays mapped. A program that runs can't be written to.
static struct {
    const ElfW(Sym) **functions;  // by address
    const char *names;
    size_t count;
    uintptr_t base;
} program;

static int note_base(struct dl_phdr_info *info, size_t size, void *base) {
    *(uintptr_t *)base = info->dlpi_addr;
    return 1;  // the program comes first
}

static int compare(const void *one, const void *other) {
    uintptr_t first = (*(const ElfW(Sym) **)one)->st_value, second = (*(const ElfW(Sym) **)other)->st_value;
    return (first > second) - (first < second);
}

static void read_symbols(const char *start) {
    const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)start;
    const ElfW(Shdr) *sections = (const ElfW(Shdr) *)(start + header->e_shoff);
    for (int index = 0; index < header->e_shnum; index++) {
        if (sections[index].sh_type != SHT_SYMTAB) continue;
        const ElfW(Sym) *symbol = (const ElfW(Sym) *)(start + sections[index].sh_offset);
        size_t count = sections[index].sh_size / sizeof *symbol;
        program.names = start + sections[sections[index].sh_link].sh_offset;
        program.functions = malloc(count * sizeof *program.functions);
        for (; program.functions && count > 0; count--, symbol++) {
            bool is_function = (symbol->st_info & 0xf) == STT_FUNC && symbol->st_size > 0;
            if (is_function) program.functions[program.count++] = symbol;
        }
        if (program.count) qsort(program.functions, program.count, sizeof *program.functions, compare);
        return;
    }
}

static void read_program(void) {
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    struct stat status;
    void *start = fstat(file, &status) == 0 ? mmap(NULL, status.st_size, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
    close(file);
    if (start == MAP_FAILED) return;
    dl_iterate_phdr(note_base, &program.base);
    read_symbols(start);
}

int doors_calls(uintptr_t *calls, int most) { return backtrace((void **)calls, most); }

const char *doors_caller_name(uintptr_t call) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_program);
    uintptr_t address = call - 1 - program.base;
    // Those before `first` begin at the address or below.
    size_t first = 0, end = program.count;
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (program.functions[middle]->st_value <= address) first = middle + 1;
        else end = middle;
    }
    const ElfW(Sym) *function = first > 0 ? program.functions[first - 1] : NULL;
    if (function && address - function->st_value < function->st_size) return program.names + function->st_name;
    return NULL;
}

// The kernel reads the address before it refuses the operation.
static bool is_readable(uintptr_t address) {
    if (address == 0 || address % sizeof address != 0) return false;
    return syscall(SYS_rt_sigprocmask, ~0, address, NULL, 8) != 0 && errno != EFAULT;
}

int doors_functions(const void *task, int function, int context, uintptr_t *functions, int most) {
    const uintptr_t *words = task;
    int error = errno, count = 0;
    functions[count++] = words[function];
    for (uintptr_t frame = words[context]; count < most && is_readable(frame) && is_readable(frame + sizeof frame); count++) {
        functions[count] = ((const uintptr_t *)frame)[1];
        frame = ((const uintptr_t *)frame)[0];
    }
    errno = error;
    return count;
}

#else

int doors_functions(const void *task, int function, int context, uintptr_t *functions, int most) { return 0; }
int doors_calls(uintptr_t *calls, int most) { return 0; }
const char *doors_caller_name(uintptr_t call) { return NULL; }

#endif
