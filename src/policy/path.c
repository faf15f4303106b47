/* path.c - joins, expands and compares paths, and compares objects. */
#include "policy/path.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/own.h"
#include "os/file.h"

/* Finds the parent of an object that has no usable "..": a file, or a directory that the caller
 * may not search. The object's name must still lead to it. */
static int parent_by_name(const struct stat *st, const char *path)
{
	auto_free char *dir = path_parent(path);
	if (dir == NULL) {
		return -1;
	}
	auto_fd fd = file_open_nosymlink(dir, O_PATH | O_DIRECTORY);
	struct stat now;
	if (fd < 0 || fstatat(fd, path_base(path), &now, AT_SYMLINK_NOFOLLOW) < 0) {
		return -1;
	}
	if (now.st_dev != st->st_dev || now.st_ino != st->st_ino) {
		errno = ESTALE;
		return -1;
	}
	return steal_fd(&fd);
}

int chain_from(int fd, const char *path, struct chain *ret)
{
	AUTO(own_close_all) struct own_fds held = { .n = 0 };
	int at = fd;
	struct stat st;
	size_t n = 0;

	assert(fd >= 0 && ret != NULL);
	if (fstat(fd, &st) < 0) {
		return -1;
	}
	ret->mode[n] = st.st_mode;
	ret->v[n++] = (struct object){ st.st_dev, st.st_ino };
	for (;;) {
		int up = S_ISDIR(st.st_mode) ? openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC)
		                             : -1;
		if (up < 0 && at == fd) {
			up = parent_by_name(&st, path);
		}
		if (up < 0) {
			return -1;
		}
		at = up;
		own_add(&held, up);
		if (fstat(at, &st) < 0) {
			return -1;
		}
		struct object o = { st.st_dev, st.st_ino };
		if (object_same(o, ret->v[n - 1])) {
			ret->n = n; /* the ".." of the root is the root itself */
			return 0;
		}
		if (n == MAX_PATH_DEPTH) {
			errno = ENAMETOOLONG;
			return -1;
		}
		ret->mode[n] = st.st_mode;
		ret->v[n++] = o;
	}
}

bool chain_has(const struct chain *c, struct object o, size_t from)
{
	for (size_t i = from; i < c->n; i++) {
		if (object_same(c->v[i], o)) {
			return true;
		}
	}
	return false;
}

char *path_expand(const struct owner *o, const char *path)
{
	if (path[0] != '~' || (path[1] != '/' && path[1] != '\0')) {
		return strdup(path);
	}
	return path_join(o->home, path + 1 + strspn(path + 1, "/"));
}

const char *path_pretty(const struct owner *o, const char *path, char *out, size_t size)
{
	const char *rest = strcmp(o->home, "/") == 0 ? NULL : path_beneath(path, o->home);

	if (rest == NULL) {
		snprintf(out, size, "%s", path);
	} else {
		snprintf(out, size, "~%s%s", *rest != '\0' ? "/" : "", rest);
	}
	return out;
}

const char *path_beneath(const char *path, const char *dir)
{
	size_t len = strlen(dir);

	if (len == 1) { /* "/" */
		return path + 1;
	}
	if (strncmp(path, dir, len) != 0) {
		return NULL;
	}
	return path[len] == '\0' ? path + len : path[len] == '/' ? path + len + 1 : NULL;
}

int path_order(const char *a, const char *b)
{
	while (*a != '\0' && *a == *b) {
		a++;
		b++;
	}
	int x = *a == '\0' ? 0 : *a == '/' ? 1 : (unsigned char)*a + 2;
	int y = *b == '\0' ? 0 : *b == '/' ? 1 : (unsigned char)*b + 2;
	return x - y;
}

char *path_join(const char *dir, const char *rest)
{
	char *path = NULL;

	if (*rest == '\0') {
		return strdup(dir);
	}
	return asprintf(&path, "%s/%s", strcmp(dir, "/") == 0 ? "" : dir, rest) < 0 ? NULL : path;
}

char *path_from(const char *dir, const char *path)
{
	return path[0] == '/' ? strdup(path) : path_join(dir, path);
}

char *path_parent(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == NULL || slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

char *path_link_text(const char *link)
{
	char to[PATH_MAX];
	ssize_t n = readlink(link, to, sizeof(to) - 1);
	const char *names = to;

	if (n <= 0) {
		return NULL;
	}
	to[n] = '\0';
	while (strncmp(names, "../", 3) == 0) {
		/* ".." at the beginning can be removed as text, because the directory's path has no
		 * symlink */
		names += 3;
	}
	if (strstr(names, "..") != NULL) {
		return NULL;
	}
	auto_free char *dir = path_parent(link);
	auto_free char *whole = dir != NULL ? path_from(dir, to) : NULL;
	return whole != NULL ? path_words(whole) : NULL;
}

char *path_link_real(const char *path)
{
	char to[PATH_MAX];
	char *real = realpath(path, NULL);
	ssize_t n = real == NULL && errno == ENOENT ? readlink(path, to, sizeof(to) - 1) : -1;

	if (n <= 0) {
		return real;
	}
	to[n] = '\0';
	auto_free char *dir = path_parent(path);
	auto_free char *whole = dir != NULL ? path_from(dir, to) : NULL;
	return whole != NULL ? path_real(whole) : NULL;
}

bool path_is_top(const char *dir)
{
	return dir[0] == '\0' || strchr(dir + 1, '/') == NULL;
}

const char *path_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

/* Appends `rest` without its empty and "." components; NULL if it contains "..". */
static char *append_rest(const char *dir, const char *rest)
{
	char *path = strdup(dir);
	char part[NAME_MAX + 1];

	while (path != NULL && *(rest += strspn(rest, "/")) != '\0') {
		size_t n = strcspn(rest, "/");
		if (n >= sizeof(part) || (n == 2 && memcmp(rest, "..", 2) == 0)) {
			free(path);
			errno = n == 2 ? EINVAL : ENAMETOOLONG;
			return NULL;
		}
		memcpy(part, rest, n);
		part[n] = '\0';
		rest += n;
		if (strcmp(part, ".") != 0) {
			char *longer = path_join(path, part);
			free(path);
			path = longer;
		}
	}
	return path;
}

char *path_words(const char *path)
{
	assert(path[0] == '/');

	char *out = malloc(strlen(path) + 2);
	size_t n = 0;

	while (out != NULL && *(path += strspn(path, "/")) != '\0') {
		size_t len = strcspn(path, "/");
		if (len == 2 && memcmp(path, "..", 2) == 0) {
			while (n > 0 && out[--n] != '/') {
			}
		} else if (len != 1 || *path != '.') {
			out[n++] = '/';
			memcpy(out + n, path, len);
			n += len;
		}
		path += len;
	}
	if (out != NULL) {
		memcpy(out + n, n == 0 ? "/" : "", n == 0 ? 2 : 1);
	}
	return out;
}

char *path_real(const char *path)
{
	auto_free char *head = strdup(path);
	struct stat st;

	if (head == NULL) {
		return NULL;
	}
	size_t len = strlen(head);
	for (;;) {
		char *real = realpath(len > 0 ? head : path[0] == '/' ? "/" : ".", NULL);
		if (real != NULL) {
			char *whole = append_rest(real, path + len);
			free(real);
			return whole;
		}
		/* A dangling symlink exists but leads nowhere: the path is not "missing", and this
		 * is an error. */
		if (errno != ENOENT || len == 0 || lstat(head, &st) == 0) {
			errno = errno == 0 ? ENOENT : errno;
			return NULL;
		}
		while (len > 0 && head[len - 1] == '/') {
			len--;
		}
		while (len > 0 && head[len - 1] != '/') {
			len--;
		}
		head[len] = '\0';
	}
}
