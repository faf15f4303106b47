/* owner.c - finds the user who runs the program. */
#include "policy/owner.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "os/file.h"
#include "policy/path.h"

extern char **environ;

const char *owner_getenv(const struct owner *o, const char *name)
{
	size_t len = strlen(name);

	if (o->environ == NULL) {
		return NULL;
	}
	for (size_t i = 0; o->environ[i] != NULL; i++) {
		if (strncmp(o->environ[i], name, len) == 0 && o->environ[i][len] == '=') {
			return o->environ[i] + len + 1;
		}
	}
	return NULL;
}

static char *real_directory(const char *path)
{
	struct stat st;

	if (path == NULL || path[0] != '/' || strlen(path) >= PATH_MAX) {
		return NULL;
	}
	auto_fd fd = file_open_real(path, O_PATH | O_DIRECTORY);
	if (fd >= 0) {
		return strdup(path);
	}
	return stat(path, &st) == 0 && S_ISDIR(st.st_mode) ? realpath(path, NULL) : NULL;
}

static char *find_home(const struct owner *o)
{
	char *home = real_directory(owner_getenv(o, "HOME"));

	if (home == NULL) {
		const struct passwd *pw = getpwuid(o->uid);
		home = real_directory(pw != NULL ? pw->pw_dir : NULL);
	}
	return home != NULL ? home : strdup("/");
}

/* The login name is written into a synthetic passwd file, so only plain names are accepted. */
static char *find_user(const struct owner *o)
{
	const char *user = owner_getenv(o, "USER");

	if (user == NULL || user[0] == '\0' || strlen(user) > 32 ||
	    user[strspn(user,
	                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.")] !=
	            '\0') {
		user = "skill";
	}
	return strdup(user);
}

/* Returns $VAR/skillsandbox, or HOME/fallback/skillsandbox. */
static char *xdg_directory(const struct owner *o, const char *var, const char *fallback)
{
	const char *base = owner_getenv(o, var);
	char *path = NULL;
	int n;

	if (base != NULL && base[0] == '/' && strlen(base) < PATH_MAX) {
		n = asprintf(&path, "%s/skillsandbox", base);
	} else {
		n = asprintf(&path, "%s/%s/skillsandbox", strcmp(o->home, "/") == 0 ? "" : o->home,
		             fallback);
	}
	return n < 0 ? NULL : path;
}

int owner_load(struct owner *ret, struct ssb_error *err)
{
	struct owner o = { .uid = getuid(), .gid = getgid(), .environ = environ };

	o.home = find_home(&o);
	o.user = find_user(&o);
	if (o.home != NULL) {
		o.config_dir = xdg_directory(&o, "XDG_CONFIG_HOME", ".config");
		o.state_dir = xdg_directory(&o, "XDG_STATE_HOME", ".local/state");
	}
	if (o.home == NULL || o.user == NULL || o.config_dir == NULL || o.state_dir == NULL) {
		owner_done(&o);
		return ssb_fail(err, SSB_E_NOMEM, 0, "owner", "out of memory");
	}
	*ret = o;
	return 0;
}

void owner_done(struct owner *o)
{
	free((void *)(uintptr_t)o->home);
	free((void *)(uintptr_t)o->user);
	free((void *)(uintptr_t)o->config_dir);
	free((void *)(uintptr_t)o->state_dir);
	*o = (struct owner){ 0 };
}

int owner_file_check(const struct owner *o, int fd, const char *what, const char *file,
                     struct ssb_error *err)
{
	assert(fd >= 0 && what != NULL && file != NULL);
	return file_check_owned(fd, o->uid, what, file, err);
}

int owner_file_read(const struct owner *o, const char *what, const char *file, struct buf *out,
                    struct ssb_error *err)
{
	/* O_NONBLOCK: if the name is a FIFO, open() must not block. owner_file_check() refuses a
	 * FIFO. */
	auto_fd fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0 && file_is_missing(errno)) {
		return 1;
	}
	if (fd < 0) {
		return ssb_fail(err, SSB_E_POLICY, errno, file, "open the %s", what);
	}
	if (owner_file_check(o, fd, what, file, err) < 0) {
		return -1;
	}
	return file_read_all(fd, out) == 0
	               ? 0
	               : ssb_fail(err, SSB_E_POLICY, errno, file, "read the %s", what);
}

bool owner_is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

char *owner_find_program(const struct owner *o, const char *name)
{
	const char *path = owner_getenv(o, "PATH");

	if (name[0] == '/') {
		return owner_is_program(name) ? strdup(name) : NULL;
	}
	if (strchr(name, '/') != NULL || *name == '\0') {
		return NULL; /* "x/y" is relative to the work directory in the sandbox */
	}
	while (path != NULL && *path != '\0') {
		size_t n = strcspn(path, ":");
		auto_free char *dir = strndup(path, n);
		path += n + (path[n] == ':');
		if (dir == NULL || dir[0] != '/') {
			continue;
		}
		char *file = path_join(dir, name);
		if (file != NULL && owner_is_program(file)) {
			return file;
		}
		free(file);
	}
	return NULL;
}
