/* hook_judge.c - see hook_judge.h. */
#include "cli/hook_judge.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/limits.h"
#include "base/own.h"
#include "base/shell_quote.h"
#include "base/visible.h"
#include "cli/hook_nest.h"
#include "cli/hook_programs.h"
#include "cli/hook_reach.h"
#include "cli/hook_skill.h"
#include "policy/path.h"

struct judging {
	const struct hook_question *q;
	struct shell_line line;
	struct hook_places places;
	char *skill; /* of which a file is named; NULL: none */
	struct buf *text;
	bool lost; /* a `cd` leads nobody knows where */
};

static bool line_looks_only(const struct judging *j)
{
	for (size_t i = 0; i < j->line.n_commands; i++) {
		if (!hook_program_looks(&j->line.commands[i], j->q->self)) {
			return false;
		}
	}
	return !j->line.broken;
}

/* The first interpreter among the words; their number: none. Not one that only compiles
 * or checks what it is given. */
static size_t interpreter_of(const struct shell_command *c)
{
	size_t i = 0;

	while (i < c->n_words &&
	       (!hook_program_interprets(c->words[i].text) || hook_program_checks(c, i))) {
		i++;
	}
	return i;
}

static bool word_names(const struct judging *j, const struct shell_word *w, bool interpreted,
                       char **ret)
{
	return hook_word_names(&j->places, w, ret) ||
	       (interpreted && hook_module_names(&j->places, w->text, ret));
}

/* What the command is given on standard input counts where it is not only looked at. */
static bool redirect_names(const struct judging *j, const struct shell_command *c, size_t at,
                           char **ret)
{
	const struct shell_redirect *r = &c->redirects[at];

	if (r->body != NULL || strstr(r->op, "<<<") != NULL) {
		const char *text = r->body != NULL ? r->body : r->target.text;
		return !hook_program_looks(c, j->q->self) &&
		       (hook_text_names(&j->places, text, strlen(text), ret) ||
		        (interpreter_of(c) < c->n_words &&
		         hook_module_names(&j->places, text, ret)));
	}
	return hook_word_names(&j->places, &r->target, ret);
}

/* Does this command start what it names? Keywords and what sets variables are passed
 * over as well: the question here is what it looks like. */
static bool starts_named(const struct judging *j, const struct shell_command *c)
{
	auto_free char *skill = NULL;
	size_t interpreter = interpreter_of(c), started = hook_program_word(c, false);

	for (size_t i = 0; i < c->n_words; i++) {
		const struct shell_word *w = &c->words[i];
		bool program = i == started && strchr(w->text, '/') != NULL && !shell_assigns(w);
		if ((program || i > interpreter) && word_names(j, w, i > interpreter, &skill)) {
			return true;
		}
	}
	if (interpreter == c->n_words) {
		return false;
	}
	for (size_t i = 0; i < c->n_redirects; i++) {
		if (redirect_names(j, c, i, &skill)) {
			return true;
		}
	}
	return c->join == SHELL_PIPE; /* it is fed by what names the file */
}

/* Everything that the line names, words first: the raw text has what stands in
 * comments, defaults of variables and the like. */
static bool names_a_skill(struct judging *j)
{
	bool named = false;

	for (size_t i = 0; i < j->line.n_commands; i++) {
		const struct shell_command *c = &j->line.commands[i];
		size_t interpreter = interpreter_of(c);
		for (size_t k = 0; k < c->n_words; k++) {
			named = word_names(j, &c->words[k], k > interpreter, &j->skill) || named;
		}
		for (size_t k = 0; k < c->n_redirects; k++) {
			named = redirect_names(j, c, k, &j->skill) || named;
		}
	}
	return named ||
	       (j->line.broken && hook_text_names(&j->places, j->q->command, j->q->len, &j->skill));
}

/* An interpreter within a skill's directory finds the skill's files without their
 * being named: python3 -m main. */
static bool interprets_in_skill(struct judging *j)
{
	for (size_t i = 0; i < j->line.n_commands; i++) {
		const struct shell_command *c = &j->line.commands[i];
		for (size_t k = 0; k < c->n_words && k <= hook_program_word(c, false); k++) {
			if (!hook_program_interprets(c->words[k].text)) {
				continue;
			}
			for (size_t n = 0; n < j->places.n; n++) {
				if (hook_skill_of(&j->places, j->places.v[n], ".", &j->skill)) {
					return true;
				}
			}
		}
	}
	return false;
}

static bool is_cd(const struct shell_command *c)
{
	return c->n_words == 2 && c->n_redirects == 0 && strcmp(c->words[0].text, "cd") == 0 &&
	       c->words[1].text[0] != '-' && c->words[1].text[0] != '\0';
}

static void add_place(struct judging *j, const struct shell_word *to)
{
	size_t n = j->places.n;

	for (size_t p = 0; p < n; p++) {
		hook_places_add(&j->places, j->places.v[p], to);
	}
}

/* CDPATH=a:b, PYTHONPATH=a:b: names are looked for there too. */
static void add_listed(struct judging *j, const struct shell_word *w)
{
	const char *value = strchr(w->text, '=');

	while (value != NULL && *value != '\0') {
		size_t len = strcspn(++value, ":");
		auto_free char *part = strndup(value, len);
		struct shell_word to = { .text = part, .plain = w->plain };
		if (part != NULL && len > 0) {
			add_place(j, &to);
		}
		value += len;
	}
}

/* Wherever a word may take the line: `cd`, what options with a directory do, and
 * variables that lead there. */
static void find_places(struct judging *j)
{
	hook_places_add(&j->places, j->q->cwd, NULL);
	for (size_t i = 0; i < j->line.n_commands; i++) {
		const struct shell_command *c = &j->line.commands[i];
		for (size_t k = 0; k < c->n_words; k++) {
			const char *before = k > 0 ? c->words[k - 1].text : "";
			bool moves = strcmp(before, "cd") == 0 || strcmp(before, "pushd") == 0;
			if (moves || strcmp(before, "-C") == 0 || strcmp(before, "--") == 0) {
				add_place(j, &c->words[k]);
			}
			j->lost = j->lost || (moves && c->words[k].unknown);
			if (strncmp(c->words[k].text, "CDPATH=", 7) == 0 ||
			    strncmp(c->words[k].text, "PYTHONPATH=", 11) == 0) {
				add_listed(j, &c->words[k]);
			}
		}
	}
}

static bool all_plain(const struct shell_command *c)
{
	static const char *const OPS[] = { "<",  ">",   ">>",  "1>",  "1>>",
		                           "2>", "2>>", "2>&", "1>&", ">&" };

	for (size_t i = 0; i < c->n_words; i++) {
		if (!c->words[i].plain) {
			return false;
		}
	}
	for (size_t i = 0; i < c->n_redirects; i++) {
		const struct shell_redirect *r = &c->redirects[i];
		bool copies = strchr(r->op, '&') != NULL;
		if (!r->target.plain || !hook_program_among(r->op, OPS, ARRAY_LEN(OPS)) ||
		    (copies && strcmp(r->target.text, "1") != 0 &&
		     strcmp(r->target.text, "2") != 0)) {
			return false;
		}
	}
	return true;
}

/* The directory of the last command, where all before it are `cd DIR &&` and lead
 * where their text says. A name with ".." behind a symlink leads a shell elsewhere
 * than the kernel. */
static char *certain_place(const struct judging *j)
{
	auto_free char *at = realpath(j->q->cwd, NULL);

	for (size_t i = 0; at != NULL && i < j->line.n_commands; i++) {
		const struct shell_command *c = &j->line.commands[i];
		if (!all_plain(c) || c->join != (i == 0 ? SHELL_FIRST : SHELL_AND)) {
			return NULL;
		}
		if (i + 1 == j->line.n_commands) {
			break;
		}
		const char *to = is_cd(c) ? c->words[1].text : "..";
		if (strstr(to, "..") != NULL || (j->q->cdpath && to[0] != '/' && to[0] != '.')) {
			return NULL;
		}
		auto_free char *full = path_from(at, to);
		char *next = full == NULL ? NULL : realpath(full, NULL);
		free(at);
		at = next;
	}
	return steal_ptr(&at);
}

struct start {
	size_t program; /* the word */
	size_t script;
	size_t args; /* the first argument behind the script */
	size_t fixed;
	char *skill;
	char *named; /* the script, where the run has to name it; else NULL */
};

static void start_done(struct start *s)
{
	free(s->skill);
	free(s->named);
}

static bool options_of_python(const char *interpreter, const char *word)
{
	return strncmp(path_base(interpreter), "python", 6) == 0 &&
	       (strcmp(word, "-u") == 0 || strcmp(word, "-B") == 0);
}

static bool find_script(const struct shell_command *c, struct start *s,
                        const char **ret_interpreter)
{
	static const char *const NO_SCRIPT[] = { "source", ".",   "eval",   "exec",
		                                 "uv",     "npx", "busybox" };

	s->program = hook_program_word(c, true);
	if (s->program >= c->n_words) {
		return false;
	}
	const char *program = c->words[s->program].text;
	s->script = s->program;
	*ret_interpreter = NULL;
	if (strchr(program, '/') == NULL || hook_program_interprets(program)) {
		if (!hook_program_interprets(program) ||
		    hook_program_among(program, NO_SCRIPT, ARRAY_LEN(NO_SCRIPT))) {
			return false;
		}
		*ret_interpreter = program;
		s->script++;
		while (s->script < c->n_words &&
		       options_of_python(program, c->words[s->script].text)) {
			s->script++;
		}
	}
	s->args = s->script + 1;
	return s->script < c->n_words && c->words[s->script].text[0] != '-';
}

/* Is the line the start of a skill, as its manifest has it? */
static bool is_start(struct judging *j, const char *place, struct start *s)
{
	const struct shell_command *c = &j->line.commands[j->line.n_commands - 1];
	const char *interpreter = NULL;
	struct stat st;

	if (!find_script(c, s, &interpreter)) {
		return false;
	}
	auto_free char *full = path_from(place, c->words[s->script].text);
	auto_free char *real = full == NULL ? NULL : realpath(full, NULL);
	if (real == NULL || stat(real, &st) != 0 || !S_ISREG(st.st_mode) ||
	    !hook_skill_of(&j->places, "/", real, &s->skill)) {
		return false;
	}
	const struct hook_start start = { .script = real,
		                          .interpreter = interpreter,
		                          .args = c->words + s->args,
		                          .n_args = c->n_words - s->args };
	return hook_is_entry(s->skill, j->q->config_dir, &start, &s->fixed, &s->named);
}

/* "PROGRAM run DIR -- SCRIPT ARGS"; nothing of the old text is copied unquoted. */
static void put_run(const struct judging *j, const struct start *s, const struct shell_command *c,
                    struct buf *out)
{
	size_t from = s->args + s->fixed;

	shell_quote(out, j->q->self);
	buf_adds(out, " run ");
	shell_quote(out, s->skill);
	if (from < c->n_words || s->named != NULL) {
		buf_adds(out, " --");
	}
	if (s->named != NULL) {
		buf_addc(out, ' ');
		shell_quote(out, s->named);
	}
	for (size_t i = from; i < c->n_words; i++) {
		buf_addc(out, ' ');
		shell_quote(out, c->words[i].text);
	}
}

static bool rewrite(struct judging *j)
{
	AUTO(start_done) struct start s = { 0 };
	struct buf *out = j->text;

	if (j->line.broken || j->line.beside || j->line.n_commands == 0 || j->places.too_many) {
		return false;
	}
	auto_free char *place = certain_place(j);
	if (place == NULL || !is_start(j, place, &s)) {
		return false;
	}
	const struct shell_command *last = &j->line.commands[j->line.n_commands - 1];
	for (size_t i = 0; i + 1 < j->line.n_commands; i++) {
		buf_adds(out, "cd ");
		shell_quote(out, j->line.commands[i].words[1].text);
		buf_adds(out, " && ");
	}
	for (size_t i = 0; i < s.program; i++) {
		shell_quote(out, last->words[i].text);
		buf_addc(out, ' ');
	}
	put_run(j, &s, last, out);
	for (size_t i = 0; i < last->n_redirects; i++) {
		buf_addf(out, " %s", last->redirects[i].op);
		shell_quote(out, last->redirects[i].target.text);
	}
	return true;
}

static void reason(const struct judging *j, const char *what)
{
	auto_buf call;

	buf_init(&call, MAX_SHELL_BYTES);
	shell_quote(&call, j->q->self);
	buf_adds(&call, " run ");
	shell_quote(&call, j->skill != NULL ? j->skill : "DIR");
	buf_addf(j->text, "skillsandbox: %s", what);
	if (j->skill != NULL) {
		buf_adds(j->text, " of the skill in ");
		visible_text(j->text, j->skill, false);
	}
	buf_adds(j->text, ". To run the skill, call the tool run_skill, or this command alone: ");
	visible_text(j->text, call.failed ? "" : call.data, false);
	buf_adds(j->text, j->skill != NULL && hook_names_script(j->skill, j->q->config_dir)
	                          ? " -- SCRIPT ARGUMENTS"
	                          : " -- ARGUMENTS");
}

/* To pass it on in silence would let an agent approve for its owner. */
static bool is_for_the_owner(const struct judging *j)
{
	for (size_t i = 0; i < j->line.n_commands; i++) {
		if (hook_program_decides(&j->line.commands[i], j->q->self)) {
			return true;
		}
	}
	return false;
}

/* Where no file is named: may one be started all the same? */
static enum hook_answer judge_reach(struct judging *j)
{
	struct hook_reach r = { .places = &j->places, .self = j->q->self, .lost = j->lost };

	for (size_t i = 0; i < j->line.n_commands; i++) {
		if (hook_reaches(&r, &j->line.commands[i], &j->skill)) {
			reason(j, "this starts files that it does not name, perhaps one");
			return HOOK_ASK;
		}
	}
	return HOOK_PASS;
}

static enum hook_answer judge_rest(struct judging *j)
{
	bool within = interprets_in_skill(j);
	if (!names_a_skill(j) && !within && !j->places.too_many) {
		return judge_reach(j);
	}
	if (rewrite(j)) {
		return HOOK_REWRITE;
	}
	buf_reset(j->text);
	for (size_t i = 0; i < j->line.n_commands; i++) {
		const struct shell_command *c = &j->line.commands[i];
		if (!hook_program_looks(c, j->q->self) && starts_named(j, c)) {
			reason(j, "this would start, outside the sandbox, a file");
			return HOOK_DENY;
		}
	}
	/* What only checks a file still loads modules from where it is. */
	if (line_looks_only(j) && !within && !j->places.too_many) {
		return HOOK_PASS;
	}
	reason(j, "this names files, and may start some,");
	return HOOK_ASK;
}

static enum hook_answer judge_line(struct judging *j)
{
	find_places(j);
	enum hook_answer a = judge_rest(j);
	if (a != HOOK_PASS || !is_for_the_owner(j)) {
		return a;
	}
	buf_reset(j->text);
	buf_adds(j->text, "skillsandbox: this changes what skills and agents may do, which is "
	                  "for their owner to decide");
	return HOOK_ASK;
}

static void judging_done(struct judging *j)
{
	hook_places_done(&j->places);
	shell_done(&j->line);
	free(j->skill);
}

static bool has_text(const struct hook_question *q, const char *text)
{
	return memmem(q->command, q->len, text, strlen(text)) != NULL;
}

/* Does the line use the variable as it finds it: $NAME or ${NAME}, and by no other word? */
static bool only_uses(const struct hook_question *q, const char *name)
{
	const size_t n = strlen(name);
	const char *end = q->command + q->len;

	for (const char *s = q->command; (s = memmem(s, (size_t)(end - s), name, n)) != NULL;
	     s += n) {
		bool braced = s - q->command >= 2 && s[-1] == '{' && s[-2] == '$' && s + n < end &&
		              s[n] == '}';
		if (!braced && (s == q->command || s[-1] != '$')) {
			return false;
		}
	}
	return true;
}

/* The owner's editor and pager are none of a skill's files. */
static const char *owners(const struct hook_question *q, const char *name)
{
	return only_uses(q, name) ? "/usr/bin/editor" : NULL;
}

static bool stays(const struct hook_question *q)
{
	return only_uses(q, "PWD") && !has_text(q, "cd") && !has_text(q, "pushd") &&
	       !has_text(q, "popd");
}

enum hook_answer hook_judge(const struct hook_question *q, struct buf *text)
{
	const struct shell_name variables[] = {
		{ .name = "PWD", .value = stays(q) ? q->cwd : NULL, .about = true },
		{ .name = "EDITOR", .value = owners(q, "EDITOR"), .about = true },
		{ .name = "VISUAL", .value = owners(q, "VISUAL"), .about = true },
		{ .name = "PAGER", .value = owners(q, "PAGER"), .about = true },
		{ .name = "HOME", .value = q->home },
		{ .name = "CLAUDE_PROJECT_DIR", .value = q->project },
		/* So that more can be added to it. */
		{ .name = "PATH", .value = "/usr/bin:/bin", .about = true },
		{ .name = NULL },
	};
	AUTO(judging_done)
	struct judging j = { .q = q, .text = text, .places = { .home = q->home } };

	j.places.project = q->project != NULL ? realpath(q->project, NULL) : NULL;
	if (shell_parse(q->command, q->len, variables, &j.line) != 0 ||
	    hook_unfold(&j.line, variables, q->self) != 0) {
		buf_adds(text, "skillsandbox: this command is too long to be understood");
		return HOOK_ASK;
	}
	return judge_line(&j);
}
