/* replay DIR LEAST - runs a fuzz target, built with the normal compiler, on every file of a corpus.
 * Fails if there are fewer than LEAST files. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>

#include "fuzz.h"
#include "base/buf.h"
#include "base/own.h"
#include "os/file.h"

#define MAX_FILE_BYTES (1 << 20)

static int replay_file(int dir_fd, const char *name)
{
	auto_buf bytes = BUF(MAX_FILE_BYTES);
	auto_fd fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || file_read_all(fd, &bytes) < 0) {
		fprintf(stderr, "replay: cannot read %s\n", name);
		return -1;
	}
	fprintf(stderr, "%s\n", name); /* after a crash, the last name tells the file */
	/* A block of exactly this size, so that a sanitizer reports a read past its end. */
	auto_free uint8_t *exact = malloc(bytes.len);
	for (size_t i = 0; exact != NULL && i < bytes.len; i++) {
		exact[i] = (uint8_t)bytes.data[i];
	}
	return LLVMFuzzerTestOneInput(exact, bytes.len);
}

int main(int argc, char **argv)
{
	DIR *dir = argc == 3 ? opendir(argv[1]) : NULL;
	long count = 0;

	if (dir == NULL) {
		fprintf(stderr, "usage: replay DIR LEAST\n");
		return 2;
	}
	for (const struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
		if (e->d_name[0] == '.') {
			continue;
		}
		if (replay_file(dirfd(dir), e->d_name) != 0) {
			return 1;
		}
		count++;
	}
	(void)closedir(dir);
	printf("%ld files\n", count);
	return count >= strtol(argv[2], NULL, 10) ? 0 : 1;
}
