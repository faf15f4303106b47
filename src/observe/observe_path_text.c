/* observe_path_text.c - changes to the text of a path that do not need the file system. */
#include <string.h>

#include "observe/observe_path_priv.h"

void observe_path_tidy(char *path)
{
	char *out = path;

	for (const char *in = path; *in != '\0';) {
		if (*in != '/') {
			*out++ = *in++;
			continue;
		}
		while (*in == '/') {
			in++;
		}
		if (in[0] == '.' && (in[1] == '/' || in[1] == '\0')) {
			in++;
		} else if (*in != '\0') {
			*out++ = '/';
		}
	}
	*out = '\0';
	if (path[0] == '\0') {
		path[0] = '/';
		path[1] = '\0';
	}
}

void observe_path_fold_dots(char *path)
{
	char *out = path;

	for (const char *in = path; *in != '\0';) {
		size_t n = 1 + strcspn(in + 1, "/");
		if (n == 3 && memcmp(in, "/..", 3) == 0) {
			while (out > path && *--out != '/') {
			}
		} else {
			memmove(out, in, n);
			out += n;
		}
		in += n;
	}
	*out = '\0';
	if (path[0] == '\0') {
		path[0] = '/';
		path[1] = '\0';
	}
}

void observe_path_copy(char out[PATH_MAX], const char *path)
{
	size_t n = strlen(path);

	n = n < PATH_MAX ? n : PATH_MAX - 1;
	memmove(out, path, n);
	out[n] = '\0';
}

bool observe_path_join(char out[PATH_MAX], const char *dir, const char *rest)
{
	size_t head = strlen(dir), tail = strlen(rest);
	size_t slash = tail > 0 ? 1 : 0;

	if (head + slash + tail >= PATH_MAX) {
		return false;
	}
	memmove(out + head + slash, rest, tail + 1);
	for (size_t i = 0; i < head; i++) {
		out[i] = dir[i];
	}
	if (slash > 0) {
		out[head] = '/';
	}
	return true;
}

size_t observe_path_before_deleted(const char *to)
{
	static const char deleted[] = " (deleted)";
	const size_t cut = sizeof(deleted) - 1;
	size_t n = strlen(to);

	return n > cut && strcmp(to + n - cut, deleted) == 0 ? n - cut : 0;
}

bool observe_path_in_proc(const char *path)
{
	return strncmp(path, "/proc/", 6) == 0;
}

bool observe_path_in_first(const char *path)
{
	return strncmp(path, "/proc/1/", 8) == 0;
}

const char *observe_path_behind(const char *path, const char *top)
{
	size_t n = strlen(top);

	return strncmp(path, top, n) == 0 && (path[n] == '/' || path[n] == '\0') ? path + n : NULL;
}
