/* hook_judge.c - see hook_judge.h.
 *
 * Two readings of a line are joined. The exact one (hook_line.h, hook_skill.h) finds the files that
 * its words name, rewrites a start and denies others. The textual one (hook_text.h) only says
 * whether the line speaks of skills at all; such a line passes only if the exact reading
 * understood all of it. Quoted texts that a program may start are read as further lines. What is
 * found only there is a question at most. */
#include "cli/hook_judge.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/own.h"
#include "base/shell_quote.h"
#include "base/visible.h"
#include "cli/hook_programs.h"
#include "cli/hook_skill.h"
#include "cli/hook_text.h"
#include "policy/path.h"

/* These variables lead a shell or programs to other files than they would find by themselves. */
static const char LEADING[] =
        "PATH HOME OLDPWD CDPATH BASH_ENV ENV PYTHONPATH PYTHONSTARTUP NODE_PATH PERL5LIB "
        "RUBYLIB LUA_PATH LD_PRELOAD LD_LIBRARY_PATH";
static const struct hook_word HERE = { .text = (char[]){ "." }, .plain = true };

struct judging {
	const struct hook_question *q;
	struct hook_line line;
	size_t n_read; /* commands of the line itself, without those in its texts */
	bool looks;    /* none of these does more than look */
	bool lost;     /* a `cd` leads to an unknown directory */
	bool within;   /* the line starts in, or changes to, a skill's directory */
	struct hook_skill_places places;
	struct hook_text names;
	char *skill; /* that is named or may be started; NULL: none is known */
	struct buf *text;
};

/* Would a shell make more of the text than one word? */
static bool is_line(const struct hook_word *w)
{
	const char *dollar = strchr(w->text, '$');

	return w->text[strcspn(w->text, " \t\n;&|<>()`'\"\\")] != '\0' ||
	       (dollar != NULL && (isalnum((unsigned char)dollar[1]) != 0 || dollar[1] == '{')) ||
	       (w->plain && (w->text[0] == '~' || strpbrk(w->text, "*?{") != NULL));
}

/* Reads the texts in the words as lines of their own; the loop comes upon their words, too. Each
 * text is shorter than the one that it stood in. `all`: a shell may get it from any command. */
static int read_texts(struct judging *j, const struct hook_name names[], bool all)
{
	for (size_t i = 0; i < j->line.n_commands; i++) {
		const struct hook_command c = j->line.commands[i]; /* the array moves */
		bool piped = i + 1 < j->line.n_commands && j->line.commands[i + 1].join == '|' &&
		             hook_programs_nest(&j->line.commands[i + 1]);
		bool reads = all || piped || !hook_programs_look(&c, j->q->self);
		for (size_t k = 0; k < c.n_words + c.n_redirects && reads; k++) {
			const struct hook_word *w =
			        k < c.n_words ? &c.words[k] : &c.redirects[k - c.n_words];
			size_t n = j->line.n_commands;
			if (is_line(w) &&
			    hook_line_read(&j->line, w->text, strlen(w->text), names, true) != 0) {
				return -1;
			}
			/* A word goes on behind a substitution: its text does, too. */
			if (c.join == ')' && k == 0 && n < j->line.n_commands) {
				j->line.commands[n].join = ')';
			}
		}
	}
	return 0;
}

static int read_line(struct judging *j, const struct hook_name names[])
{
	const struct hook_question *q = j->q;
	bool nests = false;

	if (hook_line_read(&j->line, q->command, q->len, names, false) != 0) {
		return -1;
	}
	j->n_read = j->line.n_commands;
	j->looks = true;
	for (size_t i = 0; i < j->n_read; i++) {
		const struct hook_command *c = &j->line.commands[i];
		bool looks = hook_programs_look(c, q->self);
		j->looks = j->looks && looks;
		nests = nests || (!looks && hook_programs_nest(c));
		j->line.odd = j->line.odd || nests || (!looks && hook_programs_odd(c));
	}
	bool odd = j->line.odd;
	int rc = read_texts(j, names, nests);
	j->line.odd = odd; /* by the line itself */
	return rc;
}

static bool is_leading(const struct hook_word *w)
{
	auto_free char *name = strndup(w->text, strcspn(w->text, "=+"));

	return hook_line_assigns(w) && (name == NULL || hook_programs_list(LEADING, name));
}

/* The directory to which the line changes by word k, which is behind `cd`, its options, or -C. */
static void add_move(struct judging *j, const struct hook_command *c, size_t k)
{
	const struct hook_word home = { .text = (char *)(uintptr_t)j->q->home, .plain = true };

	while (k < c->n_words && c->words[k].text[0] == '-' && c->words[k].text[1] != '\0') {
		k++;
	}
	if (k < c->n_words) {
		j->lost = j->lost || c->words[k].unknown || strcmp(c->words[k].text, "-") == 0;
		hook_skill_add_place(&j->places, &c->words[k]);
	} else if (home.text != NULL) {
		hook_skill_add_place(&j->places, &home);
	}
}

/* Finds every directory to which the line may change. */
static void find_places(struct judging *j)
{
	const struct hook_word cwd = { .text = (char *)(uintptr_t)j->q->cwd, .plain = true };

	hook_skill_add_place(&j->places, &cwd);
	for (size_t i = 0; i < j->line.n_commands; i++) {
		const struct hook_command *c = &j->line.commands[i];
		for (size_t k = 0; k < c->n_words; k++) {
			if (hook_programs_list("cd pushd", c->words[k].text)) {
				add_move(j, c, k + 1);
			} else if (strcmp(c->words[k].text, "-C") == 0 && k + 1 < c->n_words) {
				hook_skill_add_place(&j->places, &c->words[k + 1]);
			}
		}
	}
	j->within = hook_skill_names(&j->places, &HERE, &j->skill);
	hook_text_learn(&j->names, &j->places);
}

static bool any_names(struct judging *j, const struct hook_word *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (hook_skill_names(&j->places, &v[i], &j->skill)) {
			return true;
		}
	}
	return false;
}

static bool line_names(struct judging *j)
{
	for (size_t i = 0; i < j->line.n_commands; i++) {
		const struct hook_command *c = &j->line.commands[i];
		if (any_names(j, c->words, c->n_words) ||
		    any_names(j, c->redirects, c->n_redirects)) {
			return true;
		}
	}
	return false;
}

/* Does the command start what it names, or what comes to it through a pipe? */
static bool starts_named(struct judging *j, const struct hook_command *c)
{
	const size_t program = hook_programs_word(c), interpreter = hook_programs_interpreter(c);

	if (program < c->n_words && strchr(c->words[program].text, '/') != NULL &&
	    any_names(j, c->words + program, 1)) {
		return true;
	}
	return interpreter < c->n_words &&
	       (c->join == '|' ||
	        any_names(j, c->words + interpreter + 1, c->n_words - interpreter - 1) ||
	        any_names(j, c->redirects, c->n_redirects));
}

/* May command i start files that it does not name? */
static bool starts_unnamed(struct judging *j, size_t i)
{
	const struct hook_command *c = &j->line.commands[i];
	const struct hook_command *next = i + 1 < j->line.n_commands ? c + 1 : NULL;
	bool piped = next != NULL && next->join == '|' && hook_programs_reads_script(next);
	bool unnamed = hook_programs_start_unnamed(c, j->q->self) ||
	               (j->lost && !hook_programs_look(c, j->q->self));

	for (size_t k = 0; k < c->n_words && !unnamed; k++) {
		unnamed = c->words[k].unknown && (piped || is_leading(&c->words[k]));
	}
	for (size_t k = 0; k < c->n_redirects && !unnamed; k++) {
		unnamed = c->redirects[k].unknown && hook_programs_reads_script(c);
	}
	return unnamed;
}

/* Is a skill below the places, or below a directory that the line names? */
static bool is_above_skill(struct judging *j)
{
	bool above = hook_skill_below(&j->places, &HERE, &j->skill);

	for (size_t i = 0; i < j->line.n_commands && !above; i++) {
		const struct hook_command *c = &j->line.commands[i];
		for (size_t k = 0; k < c->n_words && !above; k++) {
			above = hook_skill_below(&j->places, &c->words[k], &j->skill);
		}
	}
	return above;
}

/* The directory of the command `last` if all commands before it are `cd DIR &&`, and all words of
 * these can be written again. A name with ".." behind a symlink leads a shell elsewhere than the
 * kernel. Returns new, or NULL. */
static char *find_certain_place(const struct judging *j, size_t last)
{
	auto_free char *at = realpath(j->q->cwd, NULL);

	for (size_t i = 0; i <= last && i < j->n_read; i++) {
		const struct hook_command *c = &j->line.commands[i];
		bool plain = c->join == (i == 0 ? '\0' : '&');
		for (size_t k = 0; k < c->n_words + c->n_redirects; k++) {
			plain = plain && (k < c->n_words ? c->words[k].plain
			                                 : c->redirects[k - c->n_words].plain);
		}
		if (!plain || i == last) {
			return plain ? steal_ptr(&at) : NULL;
		}
		bool moves = c->n_words == 2 && c->n_redirects == 0 &&
		             strcmp(c->words[0].text, "cd") == 0;
		const char *to = moves ? c->words[1].text : "-";
		if (to[0] == '\0' || to[0] == '-' || strstr(to, "..") != NULL ||
		    (j->q->cdpath && to[0] != '/' && to[0] != '.')) {
			return NULL;
		}
		auto_free char *full = at != NULL ? path_from(at, to) : NULL;
		free(at);
		at = full != NULL ? realpath(full, NULL) : NULL;
	}
	return NULL;
}

static void put_words(struct buf *out, const struct hook_word *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		buf_addf(out, " %s", v[i].op);
		shell_quote(out, v[i].text);
	}
}

/* "cd DIR && nohup PROGRAM run SKILL -- SCRIPT ARGUMENTS"; nothing is copied without quotes. */
static void put_run(const struct judging *j, size_t program, const struct hook_skill_start *s)
{
	const struct hook_command *last = &j->line.commands[j->n_read - 1];
	size_t from = program + s->arguments;

	for (const struct hook_command *c = j->line.commands; c < last; c++) {
		buf_adds(j->text, "cd");
		put_words(j->text, c->words + 1, 1);
		buf_adds(j->text, " && ");
	}
	for (size_t i = 0; i < program; i++) {
		shell_quote(j->text, last->words[i].text);
		buf_addc(j->text, ' ');
	}
	shell_quote(j->text, j->q->self);
	buf_adds(j->text, " run ");
	shell_quote(j->text, s->skill);
	buf_adds(j->text, from < last->n_words || s->script != NULL ? " --" : "");
	if (s->script != NULL) {
		buf_addc(j->text, ' ');
		shell_quote(j->text, s->script);
	}
	put_words(j->text, last->words + from, last->n_words - from);
	put_words(j->text, last->redirects, last->n_redirects);
}

/* Writes the start of a skill, as its manifest has it, as a run. */
static bool rewrite_line(struct judging *j)
{
	struct hook_skill_start s = { 0 };
	auto_free char *dir = j->line.odd || j->places.too_many || j->n_read == 0
	                              ? NULL
	                              : find_certain_place(j, j->n_read - 1);

	if (dir == NULL) {
		return false;
	}
	const struct hook_command *last = &j->line.commands[j->n_read - 1];
	size_t program = hook_programs_word(last);
	bool plain = program < last->n_words;
	for (size_t i = 0; i < program; i++) {
		plain = plain && !hook_line_assigns(&last->words[i]);
	}
	const struct hook_command words = { .words = last->words + program,
		                            .n_words = last->n_words - program };
	bool interpreted = plain && hook_programs_interpreter(&words) == 0;
	if (!plain ||
	    (interpreted &&
	     hook_programs_list("source . eval exec uv npx busybox", words.words[0].text)) ||
	    !hook_skill_is_start(&j->places, dir, j->q->config_dir, &words, interpreted, &s)) {
		return false;
	}
	put_run(j, program, &s);
	free(s.skill);
	free(s.script);
	return true;
}

static enum hook_answer give_reason(const struct judging *j, enum hook_answer a, const char *what)
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
	buf_adds(j->text, j->skill != NULL && hook_skill_needs_script(j->skill, j->q->config_dir)
	                          ? " -- SCRIPT ARGUMENTS"
	                          : " -- ARGUMENTS");
	return a;
}

/* In simple commands quoted text is not taken for a start of what it does not name. */
static enum hook_answer judge_unnamed(struct judging *j)
{
	bool unnamed = false;

	for (size_t i = 0; i < (j->line.odd ? j->line.n_commands : j->n_read); i++) {
		unnamed = unnamed || starts_unnamed(j, i);
	}
	if (unnamed && is_above_skill(j)) {
		return give_reason(j, HOOK_ASK, "this may start a file that it does not name");
	}
	for (size_t i = 0; i < j->line.n_commands; i++) {
		if (hook_programs_decide(&j->line.commands[i], j->q->self)) {
			buf_adds(j->text, "skillsandbox: this changes what skills and agents may "
			                  "do, which is for their owner to decide");
			return HOOK_ASK;
		}
	}
	return HOOK_PASS;
}

/* Does the word lead, from the place, to nothing that is in a skill or contains one? What it says
 * about skills must be the name of an existing file. */
static bool is_word_outside(struct judging *j, struct hook_skill_places *here,
                            const struct hook_word *w)
{
	auto_free char *full = path_from(here->v[0], w->text);
	bool about = hook_text_is_about(&j->names, w->text, strlen(w->text)) ||
	             hook_text_is_name(&j->names, w->text);

	return w->plain && full != NULL && (!about || access(full, F_OK) == 0) &&
	       !hook_skill_names(here, w, &j->skill) && !hook_skill_below(here, w, &j->skill);
}

static bool is_command_outside(struct judging *j, struct hook_skill_places *here,
                               const struct hook_command *c)
{
	bool outside = hook_programs_understand(c, j->q->self);

	for (size_t i = 0; i < c->n_words && outside; i++) {
		outside = is_word_outside(j, here, &c->words[i]);
	}
	for (size_t i = 0; i < c->n_redirects && outside; i++) {
		outside = is_word_outside(j, here, &c->redirects[i]);
	}
	return outside;
}

/* Is the whole line understood, in one directory that is certain, and leads no word of it to a
 * skill? */
static bool is_outside(struct judging *j)
{
	size_t moves = 0;

	while (moves < j->n_read && j->line.commands[moves].n_words > 0 &&
	       strcmp(j->line.commands[moves].words[0].text, "cd") == 0) {
		moves++;
	}
	auto_free char *at = moves < j->n_read ? find_certain_place(j, moves) : NULL;
	if (at == NULL) {
		return false;
	}
	struct hook_skill_places here = {
		.v = { at }, .n = 1, .home = j->places.home, .project = j->places.project
	};
	bool outside = !hook_skill_names(&here, &HERE, &j->skill);
	for (size_t i = 0; i < moves && outside; i++) {
		const char *to = j->line.commands[i].words[1].text;
		outside = !hook_text_is_about(&j->names, to, strlen(to)) ||
		          !hook_skill_below(&here, &HERE, &j->skill);
	}
	for (size_t i = moves; i < j->n_read && outside; i++) {
		const struct hook_command *c = &j->line.commands[i];
		/* Behind `cd DIR && a; b`, b may run in either directory. */
		outside = (i == moves || moves == 0 || c->join == '&' || c->join == '|') &&
		          is_command_outside(j, &here, c);
	}
	free(here.without);
	return outside;
}

static enum hook_answer judge_line(struct judging *j)
{
	bool certain = !j->line.odd && !j->places.too_many;
	bool named = line_names(j) || j->within;

	if (!named && !j->places.too_many &&
	    !hook_text_is_about(&j->names, j->q->command, j->q->len)) {
		return judge_unnamed(j);
	}
	if (rewrite_line(j)) {
		return HOOK_REWRITE;
	}
	for (size_t i = 0; i < j->n_read && certain; i++) {
		const struct hook_command *c = &j->line.commands[i];
		bool looks = hook_programs_look(c, j->q->self);
		if (named && !looks && starts_named(j, c)) {
			return give_reason(j, HOOK_DENY,
			                   "this would start, outside the sandbox, a file");
		}
		/* git obeys the settings of the repository that it is in, and Python finds
		 * modules there. */
		j->looks = j->looks && !(j->within && hook_programs_depend(c));
	}
	if (certain && (j->looks || is_outside(j))) {
		return judge_unnamed(j);
	}
	return give_reason(j, HOOK_ASK,
	                   j->skill != NULL ? "this names files, and may start some,"
	                                    : "this speaks of skills, and may start a file");
}

/* The value of a variable, unless the line may change it. */
static const char *value_unless(const struct hook_question *q, const char *value, const char *word)
{
	return memmem(q->command, q->len, word, strlen(word)) == NULL ? value : NULL;
}

enum hook_answer hook_judge(const struct hook_question *q, struct buf *text)
{
	const struct hook_name names[] = {
		{ "HOME", value_unless(q, q->home, "HOME="), false },
		{ "CLAUDE_PROJECT_DIR", value_unless(q, q->project, "DIR="), false },
		{ "PWD", value_unless(q, value_unless(q, q->cwd, "cd"), "pushd"), true },
		{ "PATH", "/usr/bin:/bin", true }, /* so that more can be added to it */
		{ NULL, NULL, false },
	};
	struct judging j = { .q = q, .text = text, .places = { .home = q->home } };
	enum hook_answer a = HOOK_ASK;

	j.places.project = q->project != NULL ? realpath(q->project, NULL) : NULL;
	if (read_line(&j, names) == 0) {
		find_places(&j);
		a = judge_line(&j);
	} else {
		buf_adds(text, "skillsandbox: this command is too long to be understood");
	}
	hook_text_done(&j.names);
	hook_skill_places_done(&j.places);
	hook_line_done(&j.line);
	free(j.skill);
	return a;
}
