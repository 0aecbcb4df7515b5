/* Preloaded into a server: its clock of the day is ahead of that of the machine by the nanoseconds in a mapped file. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND INT64_C(1000000000)

static const volatile int64_t *ahead_ns;
static int (*real_gettime)(clockid_t, struct timespec *);

__attribute__((constructor)) static void begin(void) {
    real_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    const char *name = getenv("LAB_CLOCK");
    int fd = name == NULL ? -1 : open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) abort();
    const volatile int64_t *found = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
    if (found == MAP_FAILED) abort();
    ahead_ns = found;
    close(fd);
}

int clock_gettime(clockid_t clock, struct timespec *into) {
    if (real_gettime == NULL) real_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real_gettime(clock, into);
    if (result == 0 && ahead_ns != NULL && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        int64_t now = into->tv_sec * SECOND + into->tv_nsec + *ahead_ns;
        into->tv_sec = now / SECOND;
        into->tv_nsec = now % SECOND;
    }
    return result;
}

int gettimeofday(struct timeval *into, void *zone) {
    struct timespec now;
    (void)zone;
    int result = clock_gettime(CLOCK_REALTIME, &now);
    into->tv_sec = now.tv_sec;
    into->tv_usec = now.tv_nsec / 1000;
    return result;
}

time_t time(time_t *into) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (into != NULL) *into = now.tv_sec;
    return now.tv_sec;
}
