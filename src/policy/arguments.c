/* arguments.c - grants the files and directories that the caller names in the arguments of a call.
 *
 * A word is only a text, and an agent can write any word. So a word never reaches a dangerous
 * place, even if the owner's policy file lets manifests claim this place. The owner can still grant
 * such a path with --read or --write. A client of the server gains nothing at all: a file that it
 * names is granted only if the owner says so.
 *
 * The file is opened once. The object that was judged is the object that is granted. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/limits.h"
#include "base/own.h"
#include "os/file.h"
#include "policy/build.h"
#include "policy/decide.h"
#include "policy/kernel_fs.h"
#include "policy/view.h"
#include "skill/skill.h"

#define WHERE     "named by the caller"
#define MAX_WHERE 192

/* A word of the arguments that names something which the sandbox shows. */
struct named_word {
	size_t at;     /* index in plan->argv */
	size_t prefix; /* bytes before the path, such as those of "--file=" */
	char *target;  /* the path in the sandbox */
};

/* How this plan treats the files that the arguments name. */
struct naming {
	struct build *b;
	enum access access;
	bool declared; /* the manifest asks for them, and the owner did not decline */
	size_t granted;
};

/* What one word names: an existing file or directory, or a file that the skill would make. */
struct named_file {
	const char *text; /* the path as it is written in the word */
	char *path;       /* real and absolute */
	char *parent;     /* of a missing file: the path of its directory; else NULL */
	int fd;           /* O_PATH of the object, or of that directory */
	struct stat st;   /* of that fd */
	struct subject subject;
};

static void named_file_done(struct named_file *f)
{
	free(f->path);
	free(f->parent);
	own_close(&f->fd);
}

/* ---- words -------------------------------------------------------------------------------- */

/* Returns the part of the word that may be a path; "" if it is an option without a value. */
static const char *path_part(const char *word)
{
	const char *equals = strchr(word, '=');

	return word[0] != '-' ? word : equals != NULL ? equals + 1 : "";
}

bool arguments_may_be_path(const char *word)
{
	return strpbrk(path_part(word), "/.~") != NULL;
}

/* Returns true if the word is to be looked up as a path. */
static bool is_looked_up(const struct plan_request *q, const char *word)
{
	return !q->served ||
	       (arguments_may_be_path(word) && (q->look == NULL || string_list_has(q->look, word)));
}

/* True if a word that names nothing yet looks like the name of a file to make, such as "out.csv" or
 * "./out", and not like any other text. */
static bool looks_like_file(const char *text)
{
	const char *base = strrchr(text, '/') != NULL ? strrchr(text, '/') + 1 : text;
	const char *dot = strrchr(base, '.');

	if (base[0] == '\0' || strcmp(base, "..") == 0 || strcmp(base, ".") == 0) {
		return false;
	}
	return base != text ||
	       (dot != NULL && dot != base && strchr(text, ' ') == NULL &&
	        ((dot[1] >= 'a' && dot[1] <= 'z') || (dot[1] >= 'A' && dot[1] <= 'Z')));
}

/* True for a place that the sandbox has of its own, or that every sandbox shows. */
static bool needs_no_grant(const struct build *b, const char *path)
{
	unsigned shown = b->opt->rootfs == NULL ? VIEW_ALWAYS : 0;

	return view_claimed(path, VIEW_ITSELF | shown) || path_beneath(path, "/proc") != NULL ||
	       path_beneath(path, "/dev") != NULL;
}

/* Remembers the path in the sandbox for the word at `at`. */
static void remember_word(struct build *b, size_t at, const char *text, char *target)
{
	if (target == NULL || !ARRAY_MORE(b->words, b->n_words)) {
		b->failed = true;
		free(target);
		return;
	}
	size_t prefix = (size_t)(text - b->plan->argv.v[at]);
	b->words[b->n_words++] = (struct named_word){ at, prefix, target };
}

/* ---- the object --------------------------------------------------------------------------- */

static bool open_existing(struct named_file *f)
{
	return fstat(f->fd, &f->st) == 0 && (S_ISREG(f->st.st_mode) || S_ISDIR(f->st.st_mode)) &&
	       kernel_fs_of(f->fd) == KERNEL_FS_NONE &&
	       subject_init(&f->subject, f->fd, f->path, NULL) == 0;
}

/* Opens the directory in which the file would be made. */
static bool open_parent(struct named_file *f)
{
	f->parent = path_parent(f->path);
	f->fd = f->parent != NULL ? file_open_nosymlink(f->parent, O_PATH | O_DIRECTORY) : -1;
	return f->fd >= 0 && fstat(f->fd, &f->st) == 0 && kernel_fs_of(f->fd) == KERNEL_FS_NONE &&
	       subject_init(&f->subject, f->fd, f->parent, path_beneath(f->path, f->parent)) == 0;
}

/* Finds what the word names. Returns false if the word names nothing that could be granted. */
static bool find_file(const struct naming *n, const char *text, struct named_file *ret)
{
	auto_free char *path = path_expand(n->b->owner, text);

	*ret = (struct named_file){ .text = text, .fd = -1 };
	n->b->failed |= path == NULL;
	if (path == NULL || text[0] == '\0' || strlen(text) >= MAX_PATH_BYTES ||
	    (path[0] == '/' && needs_no_grant(n->b, path))) {
		return false;
	}
	ret->path = path_real(path);
	if (ret->path == NULL || needs_no_grant(n->b, ret->path)) {
		return false;
	}
	ret->fd = file_open_nosymlink(ret->path, O_PATH);
	if (ret->fd >= 0) {
		return open_existing(ret);
	}
	return errno == ENOENT && n->access == ACCESS_WRITE && looks_like_file(text) &&
	       open_parent(ret);
}

/* Returns the file's path in the sandbox if the plan shows it without a grant of its own; new. */
static char *shown_at(const struct naming *n, const struct named_file *f)
{
	const struct build *b = n->b;
	const struct grant *g = grants_cover(b->plan, &f->subject.chain, f->path, n->access);
	struct stat skill;
	bool own = n->access == ACCESS_READ && fstat(b->skill_fd, &skill) == 0 &&
	           chain_has(&f->subject.chain, (struct object){ skill.st_dev, skill.st_ino }, 0);
	const char *rest = own         ? path_beneath(f->path, b->skill_dir)
	                   : g != NULL ? path_beneath(f->path, g->path)
	                               : NULL;

	return rest != NULL ? path_join(own ? "/skill" : g->target, rest) : NULL;
}

/* Returns the reason why naming the file is not enough to grant it; new. NULL: it may be granted,
 * or the build has failed. *ret_never is true if not even the owner can grant it. */
static char *find_danger(const struct naming *n, const struct named_file *f, bool *ret_never)
{
	const struct path_request r = {
		f->path, n->access, ORIGIN_CALLER, WHERE, NULL, NULL, false
	};

	*ret_never =
	        n->access == ACCESS_WRITE &&
	        faccessat(AT_FDCWD, f->parent != NULL ? f->parent : f->path, W_OK, AT_EACCESS) != 0;
	if (*ret_never) {
		return build_printf(n->b, f->parent != NULL ? "you may not write its directory"
		                                            : "you may not write it yourself");
	}
	if (f->parent == NULL && S_ISREG(f->st.st_mode) && f->st.st_nlink > 1) {
		return build_printf(n->b, "the file has other names (hard links), which may be in "
		                          "dangerous places");
	}
	return judge_named(n->b, &r, &f->subject, ret_never);
}

/* ---- the decision ------------------------------------------------------------------------- */

static void grant_file(struct naming *n, struct named_file *f)
{
	const struct path_request r = {
		f->path, n->access, ORIGIN_CALLER, WHERE, NULL, NULL, false
	};

	if (f->parent != NULL) {
		resolve_take_missing(n->b, &r, f->path, &f->fd, f->subject.missing);
	} else {
		resolve_take_object(n->b, &r, f->path, &f->fd, &f->st, false);
	}
	n->granted++;
}

/* Leaves the file out of the plan, and says so. `offered`: a client of the server named it, and can
 * ask the owner. Then the plan is refused until the owner has answered. */
static void deny_file(const struct naming *n, const struct named_file *f, const char *why,
                      bool never, bool offered)
{
	struct build *b = n->b;
	enum ssb_option option = n->access == ACCESS_WRITE ? SSB_OPT_WRITE : SSB_OPT_READ;
	auto_free char *what = build_printf(b, "%s%s", build_access_words(n->access), f->path);
	auto_free char *word = build_word(b, f->path);
	auto_free char *remedy =
	        never ? build_printf(b, "this is never granted; name another file")
	              : build_printf(b, "the owner can grant it: %s%s %s",
	                             b->request->served ? "skillsandbox serve " : "",
	                             options_flag(option), word != NULL ? word : "PATH");

	if (why == NULL || what == NULL || remedy == NULL) {
		b->failed = true;
	} else if (offered) {
		build_refuse(b, n->access == ACCESS_WRITE ? REFUSAL_WRITE : REFUSAL_READ, WHERE,
		             what, why, remedy);
		build_offer(b, option, f->path);
	} else {
		build_withhold(b, &(struct refusal){ .what = what,
		                                     .where = (char[]){ WHERE },
		                                     .why = (char *)(uintptr_t)why,
		                                     .remedy = remedy,
		                                     .named = true });
	}
}

/* Decides about a file that nothing else in the plan shows. */
static bool decide_file(struct naming *n, struct named_file *f)
{
	static const char AGENT[] =
	        "an agent named it in the arguments, and no option of the server "
	        "grants it";
	struct build *b = n->b;
	bool served = b->request->served;
	bool given =
	        build_gives(b, n->access == ACCESS_WRITE ? SSB_OPT_WRITE : SSB_OPT_READ, f->path);
	bool never = false;
	auto_free char *why = find_danger(n, f, &never);

	if (b->failed) {
		return false;
	}
	if (why != NULL) {
		if (n->declared || (served && b->request->asks)) {
			deny_file(n, f, why, never, false);
		}
		return false;
	}
	if (given || (n->declared && !served)) {
		grant_file(n, f);
		return true;
	}
	if (served && (n->declared || b->request->asks)) {
		deny_file(n, f, AGENT, false, b->request->asks);
	} else if (!served && string_list_add_once(&b->plan->named, f->path, MAX_NAMED_FILES) < 0) {
		b->failed |= errno == ENOMEM;
	}
	return false;
}

/* Returns true if the word means the caller's file, so that the program should get the path of this
 * file. That is so if the manifest asks for named files, if another named file was granted, or if
 * the owner granted exactly this file and the skill has no file of this name. */
static bool is_callers(const struct naming *n, const struct named_file *f)
{
	const struct build *b = n->b;

	return n->declared || n->granted > 0 ||
	       (f->text[0] != '/' &&
	        ARRAY_HAS(g, b->plan->grants, b->plan->n_grants,
	                  g->origin == ORIGIN_FLAG && strcmp(g->path, f->path) == 0) &&
	        faccessat(b->source->fd, f->text, F_OK, 0) != 0);
}

static void take_word(struct naming *n, size_t at)
{
	AUTO(named_file_done) struct named_file f = { .fd = -1 };
	struct build *b = n->b;

	if (!is_looked_up(b->request, b->plan->argv.v[at]) ||
	    !find_file(n, path_part(b->plan->argv.v[at]), &f)) {
		return;
	}
	build_add(b, &b->plan->naming, b->plan->argv.v[at], MAX_ARGS);
	char *shown = shown_at(n, &f);
	if (shown == NULL && n->granted == MAX_NAMED_FILES) {
		auto_free char *why =
		        build_printf(b, "the arguments name more than %d files", MAX_NAMED_FILES);
		deny_file(n, &f, why, false, false);
		n->granted++;
		return;
	}
	if (shown == NULL && n->granted < MAX_NAMED_FILES && decide_file(n, &f)) {
		shown = strdup(f.path);
		b->failed |= shown == NULL;
	}
	if (shown != NULL && is_callers(n, &f)) {
		remember_word(b, at, f.text, shown);
	} else {
		free(shown);
	}
}

/* ---- the request of the manifest ------------------------------------------------------------ */

/* Returns true if no argument gives the skill a file, although the manifest or the caller asks for
 * it. */
static bool is_forbidden(const struct naming *n, const char *what, char where[MAX_WHERE])
{
	struct build *b = n->b;
	const struct policy *p = &b->policy;
	bool denied = p->deny_arguments >= 0 && n->access >= (enum access)p->deny_arguments;
	bool unbound = b->unbound && n->access == ACCESS_WRITE;

	if (denied) {
		policy_where(p, &p->deny_arguments_at, where, MAX_WHERE);
	}
	if ((denied || unbound) && n->declared) {
		build_withhold(
		        b, &(struct refusal){
		                   .what = (char *)(uintptr_t)what,
		                   .where = where,
		                   .why = (char *)(uintptr_t)(denied ? "the policy file denies it"
		                                                     : UNBOUND),
		                   .remedy = (char *)(uintptr_t)(denied ? "" : UNBOUND_REMEDY),
		                   .named = true });
	}
	return denied || unbound;
}

/* Sets n->access and n->declared from what the manifest asks for. Returns false if no argument
 * gives the skill a file. */
static bool begin_naming(struct naming *n)
{
	struct build *b = n->b;
	enum named_files asked = b->manifest->arguments;
	char where[MAX_WHERE] = WHERE;

	n->access = asked == NAMED_WRITE ? ACCESS_WRITE : ACCESS_READ;
	n->declared = asked != NAMED_NOTHING;
	auto_free char *what =
	        build_printf(b, "%s%s", plan_requested_words(REQUESTED_ARGUMENTS),
	                     n->declared ? named_files_name(asked) : named_files_name(NAMED_READ));
	if (what == NULL) {
		return false;
	}
	if (n->declared) {
		build_where(b, &b->manifest->arguments_at, where, sizeof(where));
		build_add(b, &b->plan->requested, what, MAX_REQUESTS);
	}
	if (n->declared ? build_taken_out(b, REFUSAL_OTHER, where, what)
	                : build_is_taken_out(b, what)) {
		return false;
	}
	if (b->opt->learn.mode != LEARNING_NOT) {
		n->access = ACCESS_READ;
		n->declared = true;
	}
	return !is_forbidden(n, what, where);
}

void arguments_build(struct build *b)
{
	const struct string_list *argv = &b->plan->argv;
	struct naming n = { .b = b };

	assert(b->manifest != NULL && b->skill_fd >= 0);
	if (!begin_naming(&n)) {
		return;
	}
	for (size_t i = 0; i < MAX_NAMED_WORDS && b->first_arg + i < argv->n && !b->failed; i++) {
		take_word(&n, b->first_arg + i);
	}
}

/* ---- the words inside ----------------------------------------------------------------------- */

/* True if the word leads to `target` from the work directory in the sandbox. A path with ".." may
 * go through a directory that the sandbox does not have. */
static bool leads_there(const struct build *b, const char *text, const char *target)
{
	auto_free char *whole = path_from(b->plan->workdir, text);
	auto_free char *words = whole != NULL ? path_words(whole) : NULL;

	return text[0] != '~' && strstr(text, "..") == NULL && words != NULL &&
	       strcmp(words, target) == 0;
}

void arguments_rewrite(struct build *b)
{
	struct string_list *argv = &b->plan->argv;
	size_t room = MAX_ARG_BYTES;

	for (size_t i = 0; i < argv->n; i++) {
		size_t len = strlen(argv->v[i]) + 1;
		room -= len < room ? len : room;
	}
	for (size_t i = 0; i < b->n_words && !b->failed && b->plan->workdir != NULL; i++) {
		const struct named_word *w = &b->words[i];
		char **word = &argv->v[w->at];
		if (leads_there(b, *word + w->prefix, w->target) || strlen(w->target) > room) {
			continue;
		}
		char *new = build_printf(b, "%.*s%s", (int)w->prefix, *word, w->target);
		if (new != NULL) {
			room -= strlen(w->target);
			free(*word);
			*word = new;
		}
	}
}

void arguments_done(struct build *b)
{
	for (size_t i = 0; i < b->n_words; i++) {
		free(b->words[i].target);
	}
	free(b->words);
}
