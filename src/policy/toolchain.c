/* toolchain.c - grants the directories of interpreters outside the system directories.
 *
 * The command is looked up as the caller's shell would find it, and followed link by link (a venv's
 * python, a version manager's shim, a script's first line). Each directory outside the system is
 * granted read-only with the smallest prefix that works: PREFIX, for PREFIX/bin/x with libraries
 * beside bin.
 *
 * The author of a skill chooses its command, and must not choose which directory of the owner is
 * shown. So for a skill a directory is granted only for a well-known interpreter that is named
 * without a path and found in the owner's own PATH. Each such directory is a request, which the
 * owner sees and can decline. A bare command is chosen by the owner, so it has no such limits. */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "os/file.h"
#include "policy/build.h"
#include "policy/owner.h"
#include "policy/view.h"

#define MAX_LINKS  8 /* the most symlinks on the way to one program */
#define MAX_SCRIPT 3 /* the most interpreters in a row, if each is again a script */

/* Alone or with a version: "python", "python3", "python3.12". */
static const char *const INTERPRETERS[] = {
	"python", "pypy",    "uv",     "uvx",    "pipx", "poetry",  "node",  "nodejs",
	"npm",    "npx",     "pnpm",   "yarn",   "deno", "bun",     "bunx",  "tsx",
	"ruby",   "bundle",  "perl",   "php",    "lua",  "java",    "go",    "julia",
	"R",      "Rscript", "dotnet", "elixir", "erl",  "escript", "guile", "tclsh",
	"sh",     "bash",    "dash",   "zsh",    "ksh",  "fish",    "pwsh",
};

struct toolchain_search {
	struct build *b;
	const char *command; /* the command as the plan has it */
	bool asks;           /* for a skill: each directory is a request that the owner sees */
	bool chosen; /* the skill's author chose the command, so nothing is granted for it */
};

static bool is_interpreter(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(INTERPRETERS); i++) {
		size_t n = strlen(INTERPRETERS[i]);
		if (strncmp(name, INTERPRETERS[i], n) == 0 &&
		    name[n + strspn(name + n, "0123456789.")] == '\0' && name[n] != '.') {
			return true;
		}
	}
	return false;
}

static bool exists_in(const char *dir, const char *name)
{
	auto_free char *path = path_join(dir, name);

	return path != NULL && access(path, F_OK) == 0;
}

/* Writes the first word of a small file into `out`; "" if there is none. */
static void first_word(const char *file, char *out, size_t size)
{
	auto_fd fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t n = fd >= 0 ? read(fd, out, size - 1) : -1;

	out[n > 0 ? n : 0] = '\0';
	out[strcspn(out, " \t\r\n")] = '\0';
}

/* Resolves ROOT/shims/x of a version manager to ROOT/versions/V/bin/x of the version in use.
 * Returns new, or NULL if it is not such a shim. */
static char *resolve_shim(const struct owner *o, const char *file)
{
	auto_free char *dir = path_parent(file);
	auto_free char *root = dir != NULL ? path_parent(dir) : NULL;
	const char *chosen = owner_getenv(o, "PYENV_VERSION");
	char version[128];

	if (root == NULL || strcmp(path_base(dir), "shims") != 0 || !exists_in(root, "versions")) {
		return NULL;
	}
	if (chosen != NULL) {
		snprintf(version, sizeof(version), "%.*s", (int)strcspn(chosen, ":"), chosen);
	} else {
		auto_free char *name = path_join(root, "version");
		if (name == NULL) {
			return NULL;
		}
		first_word(name, version, sizeof(version));
	}
	if (version[0] == '\0' || version[0] == '.' || strchr(version, '/') != NULL) {
		return NULL;
	}
	char *real = NULL;
	if (asprintf(&real, "%s/versions/%s/bin/%s", root, version, path_base(file)) < 0) {
		return NULL;
	}
	if (!owner_is_program(real)) {
		free(real);
		return NULL;
	}
	return real;
}

/* If `dir` is PREFIX/bin with its libraries beside bin, returns PREFIX, new; otherwise NULL. */
static char *prefix_of(const char *dir)
{
	static const char *const SIGNS[] = { "lib", "lib64", "share", "pyvenv.cfg" };

	if (strcmp(path_base(dir), "bin") != 0) {
		return NULL;
	}
	auto_free char *prefix = path_parent(dir);
	for (size_t i = 0; prefix != NULL && i < ARRAY_LEN(SIGNS); i++) {
		if (exists_in(prefix, SIGNS[i])) {
			return steal_ptr(&prefix);
		}
	}
	return NULL;
}

/* Opens a directory that may be granted without asking, because it neither contains a dangerous
 * place nor lies in one. Returns an fd, with the real path new in *ret_real; or -1. */
static int open_harmless(struct build *b, const char *dir, char **ret_real)
{
	auto_free char *real = realpath(dir, NULL);
	auto_fd fd = real != NULL ? file_open_nosymlink(real, O_PATH | O_DIRECTORY) : -1;
	struct danger_hits hits;
	struct subject s;

	if (fd < 0 || build_danger(b, ACCESS_READ) == NULL ||
	    subject_init(&s, fd, real, NULL) < 0 ||
	    danger_judge(b->danger, &s, ACCESS_READ, &hits) < 0 || hits.n > 0) {
		return -1;
	}
	*ret_real = steal_ptr(&real);
	return steal_fd(&fd);
}

/* Shows `real` (held by fd, which is taken) at `target`, the path that led to it. */
static void add_grant(struct build *b, const char *target, const char *real, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0) {
		own_close(&fd);
		return;
	}
	struct grant g = {
		.path = strdup(real),
		.target = strdup(target),
		.access = ACCESS_READ,
		.origin = ORIGIN_TOOLCHAIN,
		.where = strdup("--toolchain auto"),
		.is_dir = true,
		OPEN_FILE(fd, &st),
	};
	grants_add(b, &g);
}

/* True if a grant already shows the directory at this path. */
static bool already_shown(const struct build *b, const char *path)
{
	for (size_t i = 0; i < b->plan->n_grants; i++) {
		const struct grant *g = &b->plan->grants[i];
		if (path_beneath(path, g->target) != NULL && strcmp(g->path, g->target) == 0) {
			return true;
		}
		if (g->origin == ORIGIN_TOOLCHAIN && path_beneath(path, g->target) != NULL) {
			return true;
		}
	}
	return false;
}

/* For a skill, records the directory as a request. Returns true if the owner declined it, or
 * without memory. */
static bool is_declined(const struct toolchain_search *s, const char *real)
{
	struct build *b = s->b;
	char place[PATH_MAX + 1];
	auto_free char *what = build_printf(b, "%s%s", plan_requested_words(REQUESTED_PROGRAMS),
	                                    path_pretty(b->owner, real, place, sizeof(place)));

	if (what == NULL || !s->asks || (!b->plan->toolchain_auto && b->policy.toolchain == 0)) {
		return what == NULL;
	}
	build_add(b, &b->plan->requested, what, MAX_REQUESTS);
	return build_taken_out(b, REFUSAL_READ, s->command, what);
}

/* Grants `dir`, which contains a program, or the prefix around it. Returns false if nothing is
 * granted; the caller must then stop the search. */
static bool need_directory(const struct toolchain_search *s, const char *dir)
{
	struct build *b = s->b;
	auto_free char *prefix = prefix_of(dir);
	const char *wanted = prefix != NULL ? prefix : dir;
	auto_free char *real = NULL;
	/* Quoted for a shell: the skill may have named the directory. */
	auto_free char *dir_word = build_word(b, dir);
	auto_free char *wanted_word = build_word(b, wanted);

	if (b->failed || view_is_system(dir) || already_shown(b, dir)) {
		return true;
	}
	if (s->chosen) {
		build_warn(b, "toolchain",
		           "the skill names %s, which is in %s and not in the sandbox; "
		           "--toolchain adds a directory only for a known interpreter that is "
		           "named without a path; add --read %s",
		           s->command, dir, dir_word);
		return false;
	}
	if (!b->plan->toolchain_auto && !s->asks) {
		build_warn(b, "toolchain",
		           "%s is in %s, which is not in the sandbox: add --toolchain auto, "
		           "or --read %s",
		           s->command, dir, wanted_word);
		return false;
	}
	int fd = prefix != NULL ? open_harmless(b, prefix, &real) : -1;
	if (fd < 0) {
		wanted = dir;
		fd = open_harmless(b, dir, &real);
	}
	if (fd < 0) {
		build_warn(b, "toolchain",
		           "%s is in %s, which cannot be granted automatically: add --read %s",
		           s->command, dir, dir_word);
		return false;
	}
	if (is_declined(s, real)) {
		own_close(&fd);
		return false;
	}
	add_grant(b, wanted, real, fd);
	return true;
}

/* Finds the interpreter that the first line of a script names. Returns its path, new; or NULL. */
static char *read_interpreter(const struct owner *o, const char *file)
{
	char line[256];
	auto_fd fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t n = fd >= 0 ? read(fd, line, sizeof(line) - 1) : -1;

	if (n < 3 || line[0] != '#' || line[1] != '!') {
		return NULL;
	}
	line[n] = '\0';
	line[strcspn(line, "\n")] = '\0';
	char *save = NULL;
	const char *program = strtok_r(line + 2, " \t\r", &save);
	if (program != NULL && strcmp(path_base(program), "env") == 0) {
		do {
			program = strtok_r(NULL, " \t\r", &save);
		} while (program != NULL && (program[0] == '-' || strchr(program, '=') != NULL));
	}
	return program != NULL ? owner_find_program(o, program) : NULL;
}

/* Follows the symlink `file` one step. Returns the path, new; NULL if it is not a symlink. */
static char *next_link(const char *file)
{
	char to[PATH_MAX];
	ssize_t n = readlink(file, to, sizeof(to) - 1);

	if (n <= 0) {
		return NULL;
	}
	to[n] = '\0';
	if (to[0] == '/') {
		return strdup(to);
	}
	auto_free char *dir = path_parent(file);
	auto_free char *target_dir = NULL;
	char *slash = strrchr(to, '/');
	if (slash == NULL || dir == NULL) {
		return dir != NULL ? path_join(dir, to) : NULL;
	}
	*slash = '\0';
	auto_free char *relative = path_join(dir, to);
	target_dir = relative != NULL ? realpath(relative, NULL) : NULL;
	return target_dir != NULL ? path_join(target_dir, slash + 1) : NULL;
}

/* Grants every directory on the way from `file` to the program, and to the interpreter of a
 * script. */
static void follow_links(const struct toolchain_search *s, const char *file, unsigned scripts)
{
	auto_free char *at = strdup(file);

	for (unsigned i = 0; at != NULL && i < MAX_LINKS; i++) {
		auto_free char *dir = path_parent(at);
		if (dir == NULL) {
			s->b->failed = true;
			return;
		}
		if (!need_directory(s, dir)) {
			return;
		}
		char *next = next_link(at);
		if (next == NULL) {
			break;
		}
		free(at);
		at = next;
	}
	auto_free char *program = at != NULL && scripts < MAX_SCRIPT && !view_is_system(at)
	                                  ? read_interpreter(s->b->owner, at)
	                                  : NULL;
	if (program != NULL) {
		auto_free char *real = resolve_shim(s->b->owner, program);
		follow_links(s, real != NULL ? real : program, scripts + 1);
	}
}

/* Removes the grants again, because the toolchain is off. They were made only to record the
 * requests: a skill must have the same requests on a terminal, where the toolchain is on by
 * default, and without one. */
static void take_back(struct build *b, size_t n_before, const char *command)
{
	struct ssb_plan *p = b->plan;

	auto_free char *word =
	        p->n_grants > n_before ? build_word(b, p->grants[n_before].target) : NULL;
	if (word != NULL) {
		build_warn(b, "toolchain",
		           "%s is in %s, which is not in the sandbox: add --toolchain auto, or "
		           "--read %s",
		           command, p->grants[n_before].target, word);
	}
	while (p->n_grants > n_before) {
		grants_release(&p->grants[--p->n_grants]);
	}
}

void toolchain_build(struct build *b)
{
	const char *command = b->plan->argv.n > 0 ? b->plan->argv.v[0] : "";
	bool skill = b->manifest != NULL;
	struct toolchain_search s = { b, command, skill, skill && !is_interpreter(command) };
	auto_free char *file = owner_find_program(b->owner, command);

	if (file == NULL || path_beneath(file, "/skill") != NULL) {
		return; /* the run will report "not found" */
	}
	char *real = resolve_shim(b->owner, file);
	if (real != NULL) {
		free(file);
		file = real;
	}
	size_t n_before = b->plan->n_grants;
	follow_links(&s, file, 0);
	if (!b->plan->toolchain_auto) {
		take_back(b, n_before, command);
	}
	auto_free char *dir = path_parent(file);
	if (dir != NULL && command[0] != '/' && !view_is_system(dir) && already_shown(b, dir)) {
		b->tool_bin = steal_ptr(&dir);
	}
}
