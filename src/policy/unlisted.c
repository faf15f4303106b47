/* unlisted.c - judges places in the home by their hidden names, and root's files by their modes. */
#include "policy/unlisted.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "os/file.h"
#include "os/kept_rows.h"
#include "policy/danger_set.h"
#include "policy/owner.h"
#include "skill/programs.h"

static const char CLOSED[] = "is closed to other users; if root starts the run, a manifest gets "
                             "only what other users may "
                             "read, unless the owner allows more";
static const char NAMED[] = "has the name of a program, or of a place that programs use";
static const char BEFORE[] = "existed before this skill, and may belong to another program";
static const char UNREAD[] =
        "may belong to another program: the list of the skills' own directories ('own-directories' "
        "in the runtime's state directory) cannot be read";

/* In a path that begins with `first`, the first `names` components are the place of one program:
 * ".config/x". */
static const struct {
	const char *first;
	size_t names;
} SHARED[] = { { ".config/", 2 }, { ".cache/", 2 }, { ".local/", 3 } };

size_t unlisted_length(const char *rest)
{
	size_t names = 1;
	size_t n = 0;

	if (rest[0] != '.') {
		return 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(SHARED); i++) {
		if (strncmp(rest, SHARED[i].first, strlen(SHARED[i].first)) == 0) {
			names = SHARED[i].names;
		}
	}
	for (n = strcspn(rest, "/"); names > 1 && rest[n] != '\0'; names--) {
		n += 1 + strcspn(rest + n + 1, "/");
	}
	return n;
}

bool unlisted_is_shared(const char *rest)
{
	size_t names = 1;

	for (const char *p = rest; (p = strchr(p, '/')) != NULL; p++) {
		names++;
	}
	for (size_t i = 0; i < ARRAY_LEN(SHARED); i++) {
		size_t len = strlen(SHARED[i].first) - 1;
		if (strncmp(rest, SHARED[i].first, len) == 0 &&
		    (rest[len] == '/' || rest[len] == '\0')) {
			return names < SHARED[i].names;
		}
	}
	return false;
}

/* ---- the skill's own ---------------------------------------------------------- */

/* True for a name that no table, shell or file system can take for another name. */
static bool is_plain(const char *name)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_");

	return n > 0 && n <= 64 && name[n] == '\0' && name[0] != '-';
}

static bool is_in_path(const char *dirs, const char *name)
{
	char file[MAX_PATH_BYTES];

	for (; dirs != NULL && *dirs != '\0'; dirs += dirs[0] == ':') {
		size_t n = strcspn(dirs, ":");
		int len = snprintf(file, sizeof(file), "%.*s/%s", (int)n, dirs, name);
		if (len > 0 && (size_t)len < sizeof(file) && access(file, X_OK) == 0) {
			return true;
		}
		dirs += n;
	}
	return false;
}

/* Returns the row "DIRECTORY//INODE:BIRTH/SKILL", new. A real path contains no "//", and the
 * skill's path begins with one '/'. A directory that is removed and created again has another time
 * of birth, which no program can set. The device number is left out, because some file systems get
 * another one at each boot. Returns NULL if the file system does not store the time of birth, or
 * without memory. */
static char *own_row(int fd, const char *skill_dir)
{
	char path[MAX_PATH_BYTES];
	struct statx st;
	char *row = NULL;

	if (file_path(fd, path, sizeof(path)) < 0 ||
	    statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &st) != 0 ||
	    (st.stx_mask & STATX_BTIME) == 0 ||
	    asprintf(&row, "%s//%llu:%lld.%09u/%s", path, (unsigned long long)st.stx_ino,
	             (long long)st.stx_btime.tv_sec, st.stx_btime.tv_nsec, skill_dir) < 0) {
		return NULL;
	}
	return row;
}

static char *own_row_at(const char *dir, const char *skill_dir)
{
	auto_fd fd = open(dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd >= 0 ? own_row(fd, skill_dir) : NULL;
}

/* True if the directory of the row is still the one that was made for the skill. */
static bool is_current(const char *row)
{
	const char *end = strstr(row, "//");
	const char *skill_dir = end != NULL ? strchr(end + 2, '/') : NULL;
	auto_free char *dir = skill_dir != NULL ? strndup(row, (size_t)(end - row)) : NULL;
	auto_free char *now = dir != NULL ? own_row_at(dir, skill_dir + 1) : NULL;

	return now != NULL && strcmp(now, row) == 0;
}

static const struct kept_rows OWN = { "own-directories", "list of the skills' own directories",
	                              "write", is_current };

/* Returns NULL if the existing directory is recorded as made for the skill; otherwise why it does
 * not count as the skill's. */
static const char *why_not_made(const struct build *b, const char *dir)
{
	AUTO(string_list_done) struct string_list rows = { 0 };
	auto_free char *row = b->owner->state_dir != NULL ? own_row_at(dir, b->skill_dir) : NULL;
	struct ssb_error err = { 0 };

	if (row == NULL) {
		return BEFORE;
	}
	if (kept_rows_load(&OWN, b->owner->state_dir, &rows, &err) != 0) {
		return UNREAD;
	}
	return string_list_has(&rows, row) ? NULL : BEFORE;
}

void unlisted_mark(int fd, const char *skill_dir, const char *state_dir)
{
	auto_free char *row = own_row(fd, skill_dir);

	if (row != NULL) {
		kept_rows_add(&OWN, state_dir, &(struct string_list){ .v = &row, .n = 1 });
	}
}

/* Returns NULL if the place, "HOME/.config/x", is the skill's own; otherwise why it is not. */
static const char *why_not_own(const struct build *b, const char *place, const char *rest)
{
	const char *name = b->manifest != NULL ? b->manifest->name : NULL;
	struct stat st;

	if (name == NULL || b->skill_dir == NULL || !is_plain(name) ||
	    (strncmp(rest, ".config/", 8) != 0 && strncmp(rest, ".cache/", 7) != 0) ||
	    strcmp(path_base(place), name) != 0) {
		return HIDDEN_WHY;
	}
	if (danger_knows(name) || is_in_path(SYSTEM_PATH, name) ||
	    is_in_path(owner_getenv(b->owner, "PATH"), name)) {
		return NAMED;
	}
	return lstat(place, &st) < 0 && errno == ENOENT ? NULL : why_not_made(b, place);
}

/* True if `path` is or lies in one of the skill's own places in the owner's home. `path` is
 * absolute. */
static bool is_own(const struct build *b, const char *path)
{
	const char *rest = path_beneath(path, b->owner->home);
	size_t n = rest != NULL ? unlisted_length(rest) : 0;
	auto_free char *place = n > 0 ? strndup(path, (size_t)(rest - path) + n) : NULL;

	return place != NULL && why_not_own(b, place, place + (rest - path)) == NULL;
}

/* Like is_own(), for a path such as ~/dots/config/x if ~/.config leads to ~/dots/config. */
static bool is_own_led(const struct build *b, const struct place *led, const char *path)
{
	const char *rest = path_beneath(path, led->path);
	auto_free char *spelt = rest != NULL ? path_join(led->name, rest) : NULL;

	return spelt != NULL && is_own(b, spelt);
}

bool unlisted_is_own(const struct build *b, const char *path)
{
	const struct danger *led = b->danger != NULL ? b->danger->led : NULL;
	bool own = is_own(b, path);

	for (size_t i = 0; !own && led != NULL && i < led->n_places; i++) {
		own = is_own_led(b, &led->places[i], path);
	}
	return own;
}

/* ---- a request ------------------------------------------------------------------ */

/* Returns the part of `whole` after the owner's home; NULL if `whole` does not lie there. `whole`
 * begins with the subject's path. Compares device and inode, because the home may also be mounted
 * elsewhere. */
static const char *from_home(const struct build *b, const struct subject *s, const char *whole)
{
	size_t at = strlen(s->path);
	size_t up = 0;

	while (up < s->chain.n && !object_same(s->chain.v[up], b->danger->home)) {
		up++;
	}
	if (up == s->chain.n) {
		return NULL;
	}
	for (; up > 0 && at > 0; up--) {
		do {
			at--;
		} while (at > 0 && whole[at] != '/');
	}
	return whole + at + (whole[at] == '/');
}

static void judge_hidden(struct build *b, const struct subject *s, const char *whole,
                         struct danger_room *room, struct danger_hits *hits)
{
	const char *rest = from_home(b, s, whole);
	size_t n = rest != NULL ? unlisted_length(rest) : 0;
	size_t before = n > 0 ? (size_t)(rest - whole) : 0;
	auto_free char *place = n > 0 ? strndup(whole, before + n) : NULL;

	b->failed |= n > 0 && place == NULL;
	const char *why = place != NULL ? why_not_own(b, place, place + before) : NULL;
	if (why != NULL) {
		danger_found(whole, before + n, why, DANGER_HIDDEN, room, hits);
	}
}

static void judge_closed(const struct build *b, const struct subject *s, const char *whole,
                         struct danger_room *room, struct danger_hits *hits)
{
	const struct chain *c = &s->chain;
	size_t len = strlen(s->path);
	size_t closed = 0;
	mode_t need = s->missing != NULL    ? S_IXOTH
	              : S_ISDIR(c->mode[0]) ? S_IROTH | S_IXOTH
	                                    : S_IROTH;

	for (size_t i = 0; i < c->n; i++) {
		if (object_same(c->v[i], b->danger->home) && i + 1 < c->n) {
			break;
		}
		/* after the loop: the length of the outermost object that other users cannot enter
		 * or read */
		closed = (c->mode[i] & need) != need ? len : closed;
		need = S_IXOTH;
		while (len > 1 && s->path[--len] != '/') {
		}
	}
	if (closed > 0) {
		danger_found(whole, closed, CLOSED, 0, room, hits);
	}
}

/* Judges the places to which hidden names lead. A path of the owner that merely contains such a
 * place is not a hit. */
static int judge_led(struct build *b, const struct path_request *r, const struct subject *s,
                     const char *whole, struct danger_hits *hits)
{
	const struct danger *led = danger_led(b->danger, b->owner);
	struct danger_hits found;

	if (led == NULL || danger_judge(led, s, r->access, &found) < 0 ||
	    (s->missing == NULL &&
	     danger_judge_mounts(led, danger_mounts(b->danger), s, r->access, &found) < 0)) {
		return -1;
	}
	for (size_t i = 0; i < found.n; i++) {
		const struct danger_hit *h = &found.v[i];
		bool passes = h->how == DANGER_CONTAINS
		                      ? r->origin == ORIGIN_FLAG || r->origin == ORIGIN_POLICY
		                      : is_own_led(b, h->place, whole);
		if (!passes) {
			hits->v[hits->n++] = *h;
		}
	}
	return 0;
}

int unlisted_judge(struct build *b, const struct path_request *r, const struct subject *s,
                   struct danger_room *room, struct danger_hits *hits)
{
	auto_free char *whole = path_join(s->path, s->missing != NULL ? s->missing : "");

	assert(hits->n == 0);
	if (whole == NULL) {
		return -1;
	}
	judge_hidden(b, s, whole, room, hits);
	if (hits->n == 0 && judge_led(b, r, s, whole, hits) < 0) {
		return -1;
	}
	if (hits->n == 0 && b->owner->uid == 0) {
		judge_closed(b, s, whole, room, hits);
	}
	return 0;
}
