/* observe_hidden.c - recognises what a program misses because the sandbox hides it, although the
 * plan allows the call: changes in a directory that is missing, changes of a file that is itself a
 * mount, and arguments that name a hidden file. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "observe/observe_judge_priv.h"
#include "base/array.h"
#include "base/own.h"
#include "os/file.h"
#include "policy/danger.h"
#include "policy/path.h"
#include "trace/classes.h"

bool observe_is_there(const struct observer *o, const char *path)
{
	auto_fd fd = file_openat2(o->root, path, O_PATH | O_NOFOLLOW, RESOLVE_IN_ROOT);

	return fd >= 0;
}

/* Returns whether the plan could grant the place: it contains neither the home nor a directory of
 * the runtime, and is not in a directory of the runtime. */
static bool may_be_granted(const struct observer *o, const char *path)
{
	return observe_covers(path, o->setup.plan->home) == 0 && !observe_is_runtime(o, path) &&
	       !ARRAY_HAS(dir, o->setup.own_dirs, ARRAY_LEN(o->setup.own_dirs),
	                  *dir != NULL && observe_covers(path, *dir) > 0);
}

/* Returns whether the attempt says something about the skill even if it fails: it belongs to a
 * threat class, or the path is in a store of secrets. Then the line stays as it is. */
static bool is_telling(const struct observer *o, const char *path, enum event_rule rule,
                       const struct event *e)
{
	const char *home = o->setup.plan->home;
	struct event as = *e;
	size_t store;

	as.status = STATUS_ASKED;
	as.rule = rule;
	as.path = (struct bytes){ path, strlen(path) };
	return classes_of(&as, home).id != CLASS_NONE || danger_store(home, path, &store) != NULL;
}

void observe_judge_missing(const struct observer *o, const struct resolved *at, bool makes,
                           const struct event *e, struct judgement *j)
{
	const struct grant *grant;
	enum event_rule rule;
	char needed[PATH_MAX];

	if (!j->allowed || j->error != 0 || !at->known || at->exists || at->unseen) {
		return;
	}
	enum zone zone = observe_zone(o->setup.plan, at->path, &rule, &grant);
	snprintf(needed, sizeof(needed), "%s", at->path);
	char *end = makes ? strrchr(needed, '/') : NULL;
	if ((zone != ZONE_PRIVATE && zone != ZONE_WRITE) || end == needed) {
		return;
	}
	if (end != NULL) {
		*end = '\0';
	}
	int flags = O_PATH | O_NOFOLLOW | (makes ? O_DIRECTORY : 0);
	auto_fd fd = file_openat2(o->root, needed, flags, RESOLVE_IN_ROOT);
	int error = fd < 0 ? errno : 0;
	if ((error != ENOENT && error != ENOTDIR) || is_telling(o, at->path, rule, e)) {
		return;
	}
	if (observe_is_hidden(o, needed, zone)) {
		/* A file that exists outside needs no grant of its whole directory. */
		const char *least = observe_is_hidden(o, at->path, zone) ? at->path : needed;
		observe_refuse_path(j, REASON_NOT_GRANTED, error, "--write", least);
		j->violation = false;
		j->remedy = may_be_granted(o, least) ? j->remedy : NULL;
	} else {
		j->error = error;
	}
}

/* Returns whether the kernel refuses the operation because something is mounted at the path, and
 * not because of the type of the file. */
static bool is_mount(const struct observer *o, const char *path, enum op op)
{
	struct statx at;
	auto_fd fd = file_openat2(o->root, path, O_PATH | O_NOFOLLOW, RESOLVE_IN_ROOT);

	if (fd < 0 || statx(fd, "", AT_EMPTY_PATH, STATX_TYPE, &at) != 0) {
		return false;
	}
	return (at.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0 &&
	       (op == OP_RENAME || (op == OP_RMDIR) == S_ISDIR(at.stx_mode));
}

void observe_judge_mount(const struct observer *o, const char *path, enum op op,
                         struct judgement *j)
{
	const struct grant *grant;
	enum event_rule rule;

	if (!j->allowed || j->error != 0) {
		return;
	}
	(void)observe_zone(o->setup.plan, path, &rule, &grant);
	if (grant == NULL || strcmp(grant->target, path) != 0 || !is_mount(o, path, op)) {
		return;
	}
	auto_free char *dir = path_parent(path);
	/* A grant of the directory would not help: a protected name in it is held, too. */
	bool held = dir == NULL || observe_protect_names(o, path) || !may_be_granted(o, dir);
	observe_refuse_path(j, REASON_GRANTED_ALONE, EBUSY, "--write", dir != NULL ? dir : path);
	j->violation = false;
	if (held || grant->origin == ORIGIN_SKILL) {
		j->remedy = observe_protect_instead(path);
	}
}

/* ---- files that end with the run ----------------------------------------------------------- */

/* Returns whether a person would want to keep the file: it is in the home, but is neither hidden
 * nor in a place for packages and caches. */
static bool is_kept(const char *home, const char *path)
{
	static const char *const CACHES[] = { "go", "snap", "node_modules" };
	const char *in_home = path_beneath(path, home);

	return in_home != NULL && in_home[0] != '\0' && in_home[0] != '.' &&
	       strstr(in_home, "/.") == NULL && !observe_is_cache(path) &&
	       !ARRAY_HAS(dir, CACHES, ARRAY_LEN(CACHES), path_beneath(in_home, *dir) != NULL);
}

void observe_lost_made(struct observer *o, const char *path, const char *raw)
{
	if (!is_kept(o->setup.plan->home, path)) {
		return;
	}
	bool first = o->lost.n == 0;
	if (string_list_add_once(&o->lost, path, MAX_LOST) == 0 && first && raw[0] != '/') {
		free(o->lost_relative);
		o->lost_relative = strdup(path);
	}
}

void observe_lost_removed(struct observer *o, const char *path)
{
	string_list_drop(&o->lost, path);
}

void observer_lost(struct observer *o, struct string_list *ret, bool *ret_relative)
{
	if (o == NULL || o->lost.n == 0) {
		return;
	}
	*ret_relative = o->lost_relative != NULL && strcmp(o->lost_relative, o->lost.v[0]) == 0;
	*ret = o->lost;
	o->lost = (struct string_list){ 0 };
}

/* ---- arguments ----------------------------------------------------------------------------- */

/* Returns the owner's file that the word names, as a new absolute path, or NULL. */
static char *path_of_word(const struct observer *o, const char *word, bool whole)
{
	const struct ssb_plan *plan = o->setup.plan;
	auto_free char *joined = NULL;

	if (strncmp(word, "~/", 2) == 0) {
		joined = path_join(plan->home, word + 2);
	} else if (word[0] == '/') {
		joined = strdup(word);
	} else if (whole && word[0] != '\0' && word[0] != '-') {
		auto_free char *cwd = getcwd(NULL, 0);
		auto_free char *inside = path_join(plan->workdir, word);
		bool there = inside == NULL || observe_is_there(o, inside);
		joined = cwd != NULL && !there ? path_join(cwd, word) : NULL;
	}
	return joined != NULL && strlen(joined) < PATH_MAX ? path_words(joined) : NULL;
}

/* Returns whether the sandbox hides the owner's file, and a program may have missed it. Secrets are
 * left out: a line reports them when a program tries to read them. */
static bool is_missed(const struct observer *o, const char *path)
{
	const struct ssb_plan *plan = o->setup.plan;
	const struct grant *grant;
	enum event_rule rule;
	size_t store;
	enum zone zone = observe_zone(plan, path, &rule, &grant);

	return (zone == ZONE_PRIVATE || zone == ZONE_PARTIAL || zone == ZONE_OUTSIDE) &&
	       may_be_granted(o, path) && danger_store(plan->home, path, &store) == NULL &&
	       !classes_secret_name(path) && !observe_is_there(o, path) &&
	       observe_is_hidden(o, path, zone);
}

static bool take_word(struct observer *o, const char *word, bool whole)
{
	auto_free char *path = path_of_word(o, word, whole);

	if (path == NULL || path[1] == '\0' || !is_missed(o, path)) {
		return false;
	}
	(void)string_list_add_once(&o->named, path, OBSERVE_NAMED);
	return true;
}

/* Takes the paths in a text such as a line of a shell. */
static void take_text(struct observer *o, const char *text)
{
	static const char BETWEEN[] = " \t\n'\"=:;|&<>(),`";
	char word[PATH_MAX];

	while (*text != '\0') {
		size_t n = strcspn(text, BETWEEN);
		if (n > 1 && n < sizeof(word) && (text[0] == '/' || text[0] == '~')) {
			snprintf(word, sizeof(word), "%.*s", (int)n, text);
			(void)take_word(o, word, false);
		}
		text += n + (text[n] != '\0');
	}
}

void observe_named(struct observer *o)
{
	const struct string_list *argv = &o->setup.plan->argv;

	for (size_t i = 1; i < argv->n && i < OBSERVE_ARGS; i++) {
		const char *equals = strchr(argv->v[i], '=');
		if (strlen(argv->v[i]) < OBSERVE_ARG_BYTES && !take_word(o, argv->v[i], true) &&
		    !(equals != NULL && take_word(o, equals + 1, true))) {
			take_text(o, argv->v[i]);
		}
	}
}

void observe_named_met(struct observer *o, const char *path)
{
	for (size_t i = 0; i < o->named.n; i++) {
		if (observe_covers(o->named.v[i], path) > 0) {
			o->named_met |= 1U << i;
		}
	}
}

void observer_named(struct observer *o)
{
	const char *program = o != NULL ? o->setup.plan->argv.v[0] : "";

	bool told = o != NULL && o->setup.trace != NULL && o->setup.plan->audit != AUDIT_VIOLATIONS;

	for (size_t i = 0; told && i < o->named.n; i++) {
		const char *path = o->named.v[i];
		char remedy[PATH_MAX + 16];
		struct event e = { .kind = EV_FILE_BLOCKED,
			           .status = STATUS_FACT,
			           .op = OP_NAMED,
			           .program = { program, strlen(program) },
			           .path = { path, strlen(path) },
			           .reason = REASON_NOT_GRANTED,
			           .remedy = remedy };
		if ((o->named_met >> i & 1) == 0) {
			snprintf(remedy, sizeof(remedy), "--read %s", path);
			trace_add(o->setup.trace, &e);
		}
	}
}
