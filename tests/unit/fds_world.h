/* fds_world.h - counts the open file descriptors, for tests that must not leave any open. */
#ifndef TESTS_FDS_WORLD_H
#define TESTS_FDS_WORLD_H

#include <fcntl.h>

#include "base/own.h"

static inline int lowest_free(void)
{
	auto_fd fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	return fd;
}

static inline int open_files(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++) {
		n += fcntl(fd, F_GETFD) >= 0;
	}
	return n;
}

#endif
