/* danger_led.c - the places to which the owner's own names lead, wherever they are.
 *
 * A tool that manages dotfiles keeps them in a directory of its own: ~/.config is a symlink to
 * ~/dots/config, or ~/.toolrc one to ~/dots/toolrc. The target of such a symlink is treated as
 * hidden, like its name, and so is every other path at which a mount shows the same files
 * (danger_led_mounts.c). The search covers the names of the home, and the names in ~/.config,
 * ~/.cache and ~/.local that belong to one program (see unlisted.h). It does not look for symlinks
 * deeper in these places.
 *
 * The same applies to directories that the environment names: the directories of PATH, from which
 * the owner executes programs, and the directories that programs use instead of ~/.config and the
 * like (XDG_CONFIG_HOME, ...). The targets of symlinks in the second kind are hidden, too. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/limits.h"
#include "base/own.h"
#include "os/entries.h"
#include "os/file.h"
#include "policy/danger_set.h"
#include "policy/owner.h"
#include "policy/unlisted.h"
#include "policy/view.h"

static const char IN_PATH[] = "is in your PATH, and holds programs that you run";
static const char TOO_MANY[] = "has too many hidden names to check each for symlinks";
static const char UNLISTED[] = "contains a hidden directory that cannot be listed, so its symlinks "
                               "cannot be checked";

struct led_search {
	struct danger *d;
	const struct owner *o;
	size_t names, links;
	bool unlisted; /* a directory exists, but its names cannot be read */
};

/* True for the home itself and for directories that contain it. If a hidden name leads there, the
 * files there are not hidden for that reason. */
static bool is_around_home(const struct owner *o, const struct place *p)
{
	return path_beneath(o->home, p->path) != NULL;
}

/* True for a directory outside the home that another user owns, such as /usr/share or /nix/store:
 * it contains no files of the owner. */
static bool is_anothers(const struct owner *o, const struct place *p)
{
	struct stat st;

	return p->exists && path_beneath(p->path, o->home) == NULL && stat(p->path, &st) == 0 &&
	       st.st_uid != o->uid;
}

/* Removes the places from `first` on if the last one, which was just added, contains the home or
 * belongs to another user. */
static void keep_hidden(struct danger *d, const struct owner *o, size_t first)
{
	const struct place *p = &d->places[d->n_places - 1];

	if (is_around_home(o, p) || is_anothers(o, p)) {
		danger_drop(d, first);
	}
}

/* Returns the target of the symlink; new. If `real` (the path of the symlink's directory contains
 * no symlink), the text of the symlink is tried first, because it is often enough. */
static char *target_of(const char *link, bool real)
{
	char *words = real ? path_link_text(link) : NULL;

	return words != NULL ? words : path_link_real(link);
}

static int add_link(struct led_search *s, const char *link, bool real)
{
	size_t first = s->d->n_places;
	auto_free char *target = target_of(link, real);

	s->links++;
	if (target == NULL) {
		return errno == ENOMEM ? -1 : 0;
	}
	if (danger_add_link(s->d, link, target, HIDDEN_WHY, DANGER_OF_HIDDEN) < 0) {
		return -1;
	}
	keep_hidden(s->d, s->o, first);
	return 0;
}

static int look_in(struct led_search *s, const char *dir, const char *rest, bool real);

/* Examines one name. `rest` is its path relative to the home. If `rest` is NULL, the name is in a
 * directory that a variable names (add_variable()): the directories in such a directory are not
 * searched. */
static int look_at(struct led_search *s, const char *path, const char *rest, bool real,
                   unsigned char type)
{
	struct stat st;

	if (type == DT_UNKNOWN && lstat(path, &st) != 0) {
		return file_is_missing(errno) ? 0 : -1;
	}
	if (type == DT_UNKNOWN) {
		type = (unsigned char)IFTODT(st.st_mode);
	}
	if (type == DT_LNK && add_link(s, path, real) < 0) {
		return -1;
	}
	return (type == DT_LNK || type == DT_DIR) && rest != NULL && unlisted_is_shared(rest)
	               ? look_in(s, path, rest, real && type == DT_DIR)
	               : 0;
}

/* Examines the names in a directory. A missing directory counts as empty. `rest` is its path
 * relative to the home, or NULL as in look_at(). */
static int look_in(struct led_search *s, const char *dir, const char *rest, bool real)
{
	bool is_home = rest != NULL && *rest == '\0';
	DIR *names = opendir(dir);
	const struct dirent *e;
	int result = 0;

	if (names == NULL) {
		s->unlisted |= errno == EACCES;
		return file_is_missing(errno) || errno == EACCES || errno == ELOOP ? 0 : -1;
	}
	while (result == 0 && s->names <= MAX_HIDDEN_NAMES && s->links <= MAX_HIDDEN_LINKS) {
		e = entries_of(names);
		if (e == NULL) {
			result = errno != 0 ? -1 : 0;
			break;
		}
		if (is_home && e->d_name[0] != '.') {
			continue;
		}
		s->names++;
		auto_free char *path = path_join(dir, e->d_name);
		const char *name =
		        path != NULL && rest != NULL ? path_beneath(path, s->o->home) : NULL;
		result = path != NULL ? look_at(s, path, name, real, e->d_type) : -1;
	}
	int saved = errno;
	(void)closedir(names);
	errno = saved;
	return result;
}

/* Adds the directories of PATH. A relative entry is skipped, because it names no fixed
 * directory. */
static int add_path(struct danger *d, const struct owner *o)
{
	const char *dirs = owner_getenv(o, "PATH");

	for (; dirs != NULL && *dirs != '\0'; dirs += dirs[0] == ':') {
		size_t n = strcspn(dirs, ":");
		size_t first = d->n_places;
		auto_free char *entry = strndup(dirs, n);
		bool absolute = dirs[0] == '/';
		auto_free char *dir = entry != NULL && absolute ? path_words(entry) : NULL;
		dirs += n;
		if (entry == NULL || (absolute && dir == NULL)) {
			return -1;
		}
		if (!absolute || view_is_system(dir)) {
			continue;
		}
		if (danger_add(d, dir, IN_PATH, DANGER_WRITE | DANGER_BENEATH) < 0) {
			return -1;
		}
		if (is_around_home(o, &d->places[d->n_places - 1])) {
			danger_drop(d, first);
		}
	}
	return 0;
}

/* Adds the directory that a variable names, unless the directory has a hidden name, by which it is
 * judged anyway. Examines the names in the directory, as in ~/.config. */
static int add_variable(struct led_search *s, const char *dir)
{
	const char *rest = path_beneath(dir, s->o->home);
	size_t first = s->d->n_places;

	if (rest != NULL && unlisted_is_shared(rest)) {
		return 0; /* look_in() examines it anyway */
	}
	if (danger_add(s->d, dir, HIDDEN_WHY, DANGER_OF_HIDDEN) < 0) {
		return -1;
	}
	keep_hidden(s->d, s->o, first);
	if (s->d->n_places == first) {
		return 0;
	}
	if (rest != NULL && unlisted_length(rest) > 0) {
		danger_drop(s->d, first);
	}
	return look_in(s, dir, NULL, false);
}

/* Adds the directories that these variables name. */
static int add_variables(struct led_search *s)
{
	static const char *const NAMES[] = { "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME",
		                             "XDG_CACHE_HOME",  "ZDOTDIR",       "GNUPGHOME" };

	for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
		const char *value = owner_getenv(s->o, NAMES[i]);
		bool absolute = value != NULL && value[0] == '/';
		auto_free char *dir = absolute ? path_words(value) : NULL;
		if (absolute && (dir == NULL || add_variable(s, dir) < 0)) {
			return -1;
		}
	}
	return 0;
}

static int look_up(struct danger *d, struct danger *table, const struct owner *o)
{
	const struct mounts *all = danger_mounts(table);
	struct led_search s = { .d = d, .o = o };

	if (look_in(&s, o->home, "", true) < 0 || add_path(d, o) < 0 || add_variables(&s) < 0 ||
	    danger_add_mounts(d, table, o, all) < 0) {
		return -1;
	}
	const char *why = s.names > MAX_HIDDEN_NAMES || s.links > MAX_HIDDEN_LINKS ? TOO_MANY
	                  : s.unlisted                                             ? UNLISTED
	                                                                           : NULL;
	return why != NULL ? danger_add(d, o->home, why, DANGER_OF_HIDDEN) : 0;
}

const struct danger *danger_led(struct danger *d, const struct owner *o)
{
	if (d->led != NULL) {
		return d->led;
	}
	struct danger *led = calloc(1, sizeof(*led));
	if (led == NULL) {
		return NULL;
	}
	led->home = d->home;
	/* there are few such places, so one set is used for reads and writes */
	led->access = ACCESS_WRITE;
	if (look_up(led, d, o) < 0) {
		danger_free(led);
		return NULL;
	}
	return d->led = led;
}
