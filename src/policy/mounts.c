/* mounts.c - parses the lines of mountinfo: "36 35 98:0 /root /point options - type ...". Spaces,
 * tabs, newlines and backslashes are written as octal escapes. */
#include "policy/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/own.h"
#include "os/file.h"
#include "policy/path.h"

static void unescape_octal(char *s)
{
	char *out = s;

	for (; *s != '\0'; s++) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' &&
		    s[3] >= '0' && s[3] <= '7') {
			*out++ = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0'));
			s += 3;
		} else {
			*out++ = *s;
		}
	}
	*out = '\0';
}

static int parse_line(char *line, struct mount *ret)
{
	char *save = NULL;
	char *field[5];

	for (size_t i = 0; i < ARRAY_LEN(field); i++) {
		field[i] = strtok_r(i == 0 ? line : NULL, " ", &save);
		if (field[i] == NULL) {
			return -1;
		}
	}
	unescape_octal(field[3]);
	unescape_octal(field[4]);
	const char *next = strtok_r(NULL, " ", &save);
	while (next != NULL && strcmp(next, "-") != 0) {
		next = strtok_r(NULL, " ", &save);
	}
	const char *type = next != NULL ? strtok_r(NULL, " ", &save) : NULL;
	*ret = (struct mount){ field[2], field[3], field[4], type != NULL ? type : "" };
	return 0;
}

int mounts_parse(char *text, struct mounts *ret)
{
	struct mounts m = { .text = text };
	char *save = NULL;

	for (char *line = strtok_r(text, "\n", &save); line != NULL;
	     line = strtok_r(NULL, "\n", &save)) {
		if (!ARRAY_MORE(m.v, m.n)) {
			mounts_done(&m);
			errno = ENOMEM;
			return -1;
		}
		if (parse_line(line, &m.v[m.n]) < 0) {
			mounts_done(&m);
			errno = EINVAL;
			return -1;
		}
		m.n++;
	}
	*ret = m;
	return 0;
}

int mounts_load(struct mounts *ret)
{
	auto_fd fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	auto_buf text = BUF(MAX_MOUNTS_BYTES);

	if (fd < 0 || file_read_all(fd, &text) < 0) {
		return -1;
	}
	char *s = buf_steal(&text);
	if (s == NULL) {
		errno = ENOMEM;
		return -1;
	}
	return mounts_parse(s, ret);
}

void mounts_done(struct mounts *m)
{
	free(m->v);
	free(m->text);
	*m = (struct mounts){ 0 };
}

const struct mount *mounts_of(const struct mounts *m, const char *path)
{
	const struct mount *best = NULL;
	size_t best_len = 0;

	for (size_t i = 0; i < m->n; i++) {
		size_t len = strlen(m->v[i].point);
		if (len >= best_len && path_beneath(path, m->v[i].point) != NULL) {
			best = &m->v[i];
			best_len = len;
		}
	}
	return best;
}
