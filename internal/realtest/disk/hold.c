// A library that a server is started with. It makes the calls that wait for the disk
// wait as long as the file named by SEMEL_TEST_HOLD exists.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

typedef int (*sync_call)(int);

static int held(const char *name, int fd) {
	const char *hold = getenv("SEMEL_TEST_HOLD");
	while (hold && access(hold, F_OK) == 0) {
		usleep(2000);
	}
	return ((sync_call)dlsym(RTLD_NEXT, name))(fd);
}

int fsync(int fd) { return held("fsync", fd); }
int fdatasync(int fd) { return held("fdatasync", fd); }
