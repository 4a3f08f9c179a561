/* Loaded before libc: fsync and fdatasync take NANOS nanoseconds longer. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <time.h>

typedef int (*sync_fn)(int);

static void wait_longer(void) {
	struct timespec left = {NANOS / 1000000000L, NANOS % 1000000000L};
	while (nanosleep(&left, &left) == -1 && errno == EINTR) {
	}
}

int fsync(int fd) {
	sync_fn next = (sync_fn)dlsym(RTLD_NEXT, "fsync");
	wait_longer();
	return next(fd);
}

int fdatasync(int fd) {
	sync_fn next = (sync_fn)dlsym(RTLD_NEXT, "fdatasync");
	wait_longer();
	return next(fd);
}
