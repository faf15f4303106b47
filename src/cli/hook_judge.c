/* hook_judge.c - see hook_judge.h.
 *
 * The exact reading of a line finds what only looks, and the simple command that starts a skill.
 * Everything else is judged by the flat readings: whether a word of them leads to a skill, contains
 * the name of one, or is unknown where a program or a file to start stands. */
#include "cli/hook_judge.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/limits.h"
#include "base/own.h"
#include "base/shell_quote.h"
#include "base/string_list.h"
#include "base/visible.h"
#include "cli/hook_line.h"
#include "cli/hook_rules.h"
#include "cli/hook_skill.h"
#include "policy/path.h"

struct judging {
	const struct hook_question *q;
	struct hook_skills skills;
	bool simple;              /* the line is a list of simple commands: */
	struct buf exact;         /* their text, */
	struct string_list words; /* and its words */
	size_t first;             /* of these, the first behind `cd DIR &&` */
	char *certain;            /* the directory there; NULL: it is not certain */
	struct buf flat;          /* the other readings */
	struct string_list flat_words;
	struct buf *text;
};

/* The simple command behind `cd DIR &&`. */
struct program {
	struct string_list words; /* without what is in: */
	struct buf before;        /* `nohup`, quoted */
	struct buf behind;        /* the redirections, quoted */
	bool plain;               /* all of it is literal, and no variable is set */
};

static bool is_join(const char *word)
{
	return strpbrk(word, ";|&") != NULL;
}

static bool is_plain(const char *word)
{
	return strpbrk(word, "$*?[{!") == NULL;
}

/* The word without its mask; new. */
static char *copy_word(const char *masked)
{
	char *word = strdup(masked);

	if (word != NULL) {
		hook_line_unmask(word);
	}
	return word;
}

static void put_quoted(struct buf *out, const char *masked)
{
	auto_free char *word = copy_word(masked);

	out->failed = out->failed || word == NULL;
	shell_quote(out, word != NULL ? word : "");
}

static int split_words(const char *text, size_t max, struct string_list *ret)
{
	for (size_t n = 0; *(text += strspn(text, " ")) != '\0'; text += n) {
		n = strcspn(text, " ");
		auto_free char *word = strndup(text, n);
		if (word == NULL || string_list_add(ret, word, max) != 0) {
			return -1;
		}
	}
	return 0;
}

/* Follows `cd DIR &&`. A name with ".." behind a symlink leads a shell elsewhere than the kernel;
 * behind `cd DIR && a; b`, b may run in either directory. */
static void find_certain_place(struct judging *j)
{
	auto_free char *at = realpath(j->q->cwd, NULL);
	bool certain = j->simple;
	char **w = j->words.v;
	size_t i = 1;

	for (; i + 3 < j->words.n && strcmp(w[i], "cd") == 0 && strcmp(w[i + 2], "&&") == 0;
	     i += 3) {
		auto_free char *to = copy_word(w[i + 1]);
		auto_free char *full = at != NULL && to != NULL ? path_from(at, to) : NULL;
		free(at);
		at = full != NULL ? realpath(full, NULL) : NULL;
		certain = certain && is_plain(w[i + 1]) && at != NULL && to[0] != '\0' &&
		          to[0] != '-' && strstr(to, "..") == NULL &&
		          (!j->q->cdpath || to[0] == '/' || to[0] == '.');
	}
	j->first = i;
	for (; i + 1 < j->words.n && j->first > 1; i++) {
		certain = certain && strcmp(w[i], ";") != 0 && strcmp(w[i], "||") != 0;
	}
	j->certain = certain ? steal_ptr(&at) : NULL;
}

/* Finds every directory to which the line may change. */
static void find_places(struct judging *j)
{
	char **w = j->flat_words.v;

	hook_skill_enter(&j->skills, j->certain != NULL ? j->certain : j->q->cwd);
	for (size_t i = 0; i + 1 < j->flat_words.n; i++) {
		bool moves = strcmp(w[i], "cd") == 0 || strcmp(w[i], "pushd") == 0;
		size_t to = i + 1;
		while (moves && w[to][0] == '-' && to + 1 < j->flat_words.n) {
			to++;
		}
		if (moves && is_join(w[to]) && j->q->home != NULL) {
			hook_skill_enter(&j->skills, j->q->home);
		} else if ((moves || strcmp(w[i], "-C") == 0) && strchr(w[to], '$') == NULL) {
			hook_skill_enter(&j->skills, w[to]);
		}
	}
	hook_skill_learn(&j->skills, j->q->home);
}

/* Writes the flat text again. Our own program is "skillsandbox" there, under whatever name it
 * stands in one of the places or where a shell looks for programs. */
static void name_program(struct judging *j)
{
	AUTO(string_list_done) struct string_list dirs = { 0 };
	auto_free char *path = strdup(j->q->path != NULL ? j->q->path : "");
	struct stat self = { 0 }, st;
	bool known = stat(j->q->self, &self) == 0;

	for (size_t i = 0; i < j->skills.places.n; i++) {
		(void)string_list_add(&dirs, j->skills.places.v[i], MAX_SHELL_WORDS);
	}
	for (char *rest = path, *dir = NULL; (dir = strsep(&rest, ":")) != NULL;) {
		(void)string_list_add(&dirs, dir, MAX_SHELL_WORDS);
	}
	buf_reset(&j->flat);
	for (size_t i = 0; i < j->flat_words.n; i++) {
		const char *word = j->flat_words.v[i];
		bool ours = strcmp(path_base(word), "skillsandbox") == 0;
		for (size_t k = 0; k < dirs.n && known && !ours; k++) {
			auto_free char *full = path_from(dirs.v[k], word);
			ours = full != NULL && stat(full, &st) == 0 && st.st_dev == self.st_dev &&
			       st.st_ino == self.st_ino;
		}
		buf_addf(&j->flat, " %s", ours ? "skillsandbox" : word);
	}
	buf_addc(&j->flat, ' ');
}

/* Appends the exact text without its redirections. */
static void put_bare(struct buf *exact)
{
	auto_free char *text = strdup(exact->data != NULL ? exact->data : "");
	bool file = false; /* the word is the file of a redirection */

	exact->failed = exact->failed || text == NULL;
	for (char *rest = text, *word = NULL; (word = strsep(&rest, " ")) != NULL;) {
		bool redirects = strpbrk(word, "<>") != NULL;
		if (word[0] != '\0' && !redirects && !file) {
			buf_addf(exact, "%s ", word);
		}
		file = redirects ? strpbrk(word + strlen(word) - 1, "<>") != NULL
		                 : file && word[0] == '\0';
	}
}

/* `names`: PWD and PATH come first; they are good enough to judge by, not to rewrite. */
static int read_line(struct judging *j, const struct hook_name names[])
{
	const struct hook_question *q = j->q;
	auto_buf literal;

	buf_init(&literal, 8 * MAX_SHELL_BYTES);
	j->simple = hook_line_read(&literal, q->command, q->len, names + 2, HOOK_EXACT);
	(void)hook_line_read(&j->exact, q->command, q->len, names, HOOK_EXACT);
	(void)hook_line_read(&j->flat, q->command, q->len, names, HOOK_JOINED);
	(void)hook_line_read(&j->flat, q->command, q->len, names, HOOK_SPLIT);
	if (memchr(q->command, '<', q->len) != NULL || memchr(q->command, '>', q->len) != NULL) {
		(void)hook_line_read(&j->flat, q->command, q->len, names, HOOK_BARE);
		put_bare(&j->exact);
	}
	if (q->len > MAX_SHELL_BYTES || literal.failed || j->exact.failed || j->flat.failed ||
	    split_words(literal.data, MAX_SHELL_WORDS, &j->words) != 0 ||
	    split_words(j->flat.data, 6 * MAX_SHELL_WORDS, &j->flat_words) != 0) {
		return -1;
	}
	find_certain_place(j);
	find_places(j);
	name_program(j);
	return j->flat.failed ? -1 : 0;
}

/* Is the line made of simple commands that only look? */
static bool looks_all(const struct judging *j, bool within)
{
	bool looks = j->simple;
	size_t n = 0;

	for (const char *c = j->exact.data; looks && *(c += strspn(c, " ;|&")) != '\0'; c += n) {
		n = strcspn(c, ";|&");
		auto_free char *command = strndup(c, n);
		looks = command != NULL && hook_rules_look(command, j->q->self, within);
	}
	return looks;
}

static void program_done(struct program *p)
{
	string_list_done(&p->words);
	buf_done(&p->before);
	buf_done(&p->behind);
}

/* Returns false if the line is not one simple command behind `cd DIR &&`. */
static bool read_program(const struct judging *j, struct program *p)
{
	bool file = false; /* the word is the file of a redirection */
	const char *last = "";

	buf_init(&p->before, 8 * MAX_SHELL_BYTES);
	buf_init(&p->behind, 8 * MAX_SHELL_BYTES);
	buf_adds(&p->before, "");
	buf_adds(&p->behind, "");
	p->plain = true;
	for (size_t i = j->first; i + 1 < j->words.n; last = j->words.v[i++]) {
		const char *masked = j->words.v[i];
		auto_free char *word = copy_word(masked);
		bool wrapper = p->words.n == 0 && hook_rules_is_wrapper(masked, last);
		if (is_join(masked) || word == NULL) {
			return false;
		}
		p->plain = p->plain && is_plain(masked) && !(wrapper && strchr(masked, '='));
		if (file || wrapper) {
			put_quoted(file ? &p->behind : &p->before, masked);
			buf_adds(&p->before, file ? "" : " ");
			file = false;
		} else if (strpbrk(masked, "<>") != NULL) {
			buf_addf(&p->behind, " %s", word);
			file = strchr(word, '&') == NULL;
		} else if (string_list_add(&p->words, word, MAX_SHELL_WORDS) != 0) {
			return false;
		}
	}
	return j->simple && p->words.n > 0 && !p->before.failed && !p->behind.failed;
}

/* "cd DIR && nohup PROGRAM run SKILL -- SCRIPT ARGUMENTS >FILE" */
static bool rewrite_line(struct judging *j, const struct program *p)
{
	auto_buf run;

	buf_init(&run, 8 * MAX_SHELL_BYTES);
	if (j->certain == NULL || !p->plain ||
	    !hook_skill_run(&j->skills, j->q->config_dir, p->words.v, &run)) {
		return false;
	}
	for (size_t i = 1; i < j->first; i += 3) {
		buf_adds(j->text, "cd ");
		put_quoted(j->text, j->words.v[i + 1]);
		buf_adds(j->text, " && ");
	}
	buf_adds(j->text, p->before.data);
	shell_quote(j->text, j->q->self);
	buf_addf(j->text, "%s%s", run.data, p->behind.data);
	j->text->failed = j->text->failed || run.failed;
	return true;
}

/* Does a word of the line lead into a skill? */
static bool line_names(struct judging *j)
{
	for (size_t i = 0; i < j->words.n && j->simple; i++) {
		auto_free char *word = copy_word(j->words.v[i]);
		if (word == NULL || hook_skill_names(&j->skills, word)) {
			return true;
		}
	}
	for (size_t i = 0; i < j->flat_words.n; i++) {
		if (hook_skill_names(&j->skills, j->flat_words.v[i])) {
			return true;
		}
	}
	return false;
}

/* May the line change the owner's own files? */
static bool changes_own(struct judging *j, bool looks)
{
	j->skills.only_own = true;
	bool own = j->skills.own.n > 0 && (!looks || hook_rules_change(j->exact.data)) &&
	           (strstr(j->flat.data, "$/skillsandbox/") != NULL || line_names(j));
	j->skills.only_own = false;
	string_list_done(&j->skills.patterns);
	return own;
}

/* Is a skill below the places, or below a directory that the line names? */
static bool is_above_skill(struct judging *j)
{
	bool above = hook_skill_below(&j->skills, ".") || hook_skill_below(&j->skills, j->q->cwd);

	for (size_t i = 0; i < j->flat_words.n && !above; i++) {
		above = hook_skill_below(&j->skills, j->flat_words.v[i]);
	}
	return above;
}

static enum hook_answer give_reason(const struct judging *j, enum hook_answer a, const char *what)
{
	const char *skill = j->skills.found;
	auto_buf call;

	buf_init(&call, 8 * MAX_SHELL_BYTES);
	shell_quote(&call, j->q->self);
	buf_adds(&call, " run ");
	shell_quote(&call, skill != NULL ? skill : "DIR");
	buf_addf(j->text, "skillsandbox: this command %s", what);
	if (skill != NULL) {
		buf_adds(j->text, " of the skill in ");
		visible_text(j->text, skill, false);
	}
	buf_adds(j->text,
	         ". To run the skill, call the tool run_skill, or this command alone, with "
	         "SCRIPT if the skill has no manifest: ");
	visible_text(j->text, call.failed ? "" : call.data, false);
	buf_adds(j->text, " -- SCRIPT ARGUMENTS");
	return a;
}

static enum hook_answer leave_to_owner(const struct judging *j)
{
	buf_adds(j->text, "skillsandbox: this command changes what skills and agents may "
	                  "do, which is for their owner to decide");
	return HOOK_ASK;
}

static enum hook_answer judge_line(struct judging *j)
{
	AUTO(program_done) struct program p = { 0 };
	const bool one = read_program(j, &p), within = hook_skill_names(&j->skills, ".");
	/* In simple commands quoted text is not taken for a start of what it does not name. */
	const bool nests = !j->simple || hook_rules_nest(j->exact.data);
	const bool looks = looks_all(j, within);

	if (changes_own(j, looks)) {
		return j->skills.unsure ? give_reason(j, HOOK_ASK, "names, and may start, a file")
		                        : leave_to_owner(j);
	}
	if (one && rewrite_line(j, &p)) {
		return HOOK_REWRITE;
	}
	if (looks) {
		return HOOK_PASS;
	}
	bool names = line_names(j);
	if (within || names) {
		const bool sure = one && names && !nests && j->certain && !j->skills.unsure;
		const char *program = sure ? p.words.v[0] : "";
		bool starts =
		        hook_rules_is_starter(program) ||
		        (strchr(program, '/') != NULL && hook_skill_names(&j->skills, program));
		return starts ? give_reason(j, HOOK_DENY,
		                            "would start, outside the sandbox, a file")
		              : give_reason(j, HOOK_ASK, "names, and may start, a file");
	}
	if (hook_skill_mentions(&j->skills, j->flat.data)) {
		return give_reason(j, HOOK_ASK,
		                   "contains the name of a skill, and may start a file");
	}
	if (hook_rules_start_unnamed(nests ? j->flat.data : j->exact.data) && is_above_skill(j)) {
		return give_reason(j, HOOK_ASK, "may start a file that it does not name");
	}
	if (hook_rules_decide(j->flat.data, nests)) {
		return leave_to_owner(j);
	}
	return HOOK_PASS;
}

/* The value of a variable, unless the line may change it. */
static const char *value_unless(const struct hook_question *q, const char *value, const char *word)
{
	return memmem(q->command, q->len, word, strlen(word)) == NULL ? value : NULL;
}

enum hook_answer hook_judge(const struct hook_question *q, struct buf *text)
{
	const struct hook_name names[] = {
		{ "PWD", value_unless(q, value_unless(q, q->cwd, "cd"), "pushd") },
		{ "PATH", "/usr/bin:/bin" }, /* so that more can be added to it */
		{ "HOME", value_unless(q, q->home, "HOME=") },
		{ "CLAUDE_PROJECT_DIR", value_unless(q, q->project, "DIR=") },
		{ NULL, NULL },
	};
	struct judging j = { .q = q, .text = text };
	enum hook_answer a = HOOK_ASK;

	buf_init(&j.exact, 8 * MAX_SHELL_BYTES);
	buf_init(&j.flat, 16 * MAX_SHELL_BYTES);
	j.skills.project = q->project != NULL ? realpath(q->project, NULL) : NULL;
	hook_skill_keep(&j.skills, q->config_dir);
	hook_skill_keep(&j.skills, q->state_dir);
	if (read_line(&j, names) == 0) {
		a = judge_line(&j);
	} else {
		buf_adds(text, "skillsandbox: this command is too long to be understood");
	}
	buf_done(&j.exact);
	buf_done(&j.flat);
	string_list_done(&j.words);
	string_list_done(&j.flat_words);
	hook_skill_done(&j.skills);
	free(j.certain);
	return a;
}
