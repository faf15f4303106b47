/* hook_judge.c - see hook_judge.h. Quoted texts that a program may start are read as further lines.
 * What is found only there is a question at most. */
#include "cli/hook_judge.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/own.h"
#include "base/shell_quote.h"
#include "base/visible.h"
#include "cli/hook_programs.h"
#include "cli/hook_skill.h"
#include "policy/path.h"

/* These variables lead programs to other files than they would find by themselves. */
static const char LEADING[] =
        "PATH CDPATH BASH_ENV ENV PYTHONPATH PYTHONSTARTUP NODE_PATH PERL5LIB "
        "RUBYLIB LUA_PATH LD_PRELOAD LD_LIBRARY_PATH";
static const struct hook_word HERE = { .text = (char[]){ "." }, .plain = true };

struct judging {
	const struct hook_question *q;
	struct hook_line line;
	size_t n_read; /* commands of the line itself, without those in its texts */
	bool looks;    /* none of these does more than look */
	bool lost;     /* a `cd` leads to an unknown directory */
	bool led;      /* a variable leads to a directory with skills */
	struct hook_skill_places places;
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

/* "PYTHONPATH=a:b": names may start from there, too. PATH has programs directly in its directories,
 * which their names then name. */
static void add_listed(struct judging *j, const struct hook_word *w)
{
	for (const char *s = strchr(w->text, '='); s != NULL; s = strchr(s, ':')) {
		auto_free char *part = strndup(s + 1, strcspn(s + 1, ":"));
		const struct hook_word dir = { .text = part, .plain = w->plain };
		if (part != NULL && part[strspn(part, "./")] != '\0') {
			hook_skill_add_place(&j->places, &dir);
			j->led = j->led || hook_skill_below(&j->places, &dir, &j->skill);
		}
		s++;
	}
}

/* Every directory to which a word may take the line: behind `cd` and -C, and in variables. */
static void find_places(struct judging *j)
{
	const struct hook_word cwd = { .text = (char *)(uintptr_t)j->q->cwd, .plain = true };

	hook_skill_add_place(&j->places, &cwd);
	for (size_t i = 0; i < j->line.n_commands; i++) {
		const struct hook_command *c = &j->line.commands[i];
		for (size_t k = 0; k < c->n_words; k++) {
			const char *before = k > 0 ? c->words[k - 1].text : "";
			bool moves = hook_programs_list("cd pushd", before);
			j->lost = j->lost || (moves && c->words[k].unknown);
			if (moves || hook_programs_list("-C --", before)) {
				hook_skill_add_place(&j->places, &c->words[k]);
			} else if (is_leading(&c->words[k]) &&
			           strncmp(c->words[k].text, "PATH", 4) != 0) {
				add_listed(j, &c->words[k]);
			}
		}
	}
}

/* An interpreter in a skill's directory finds files that are not named: python3 -m main. */
static bool interprets_in_skill(struct judging *j)
{
	for (size_t i = 0; i < j->line.n_commands; i++) {
		const struct hook_command *c = &j->line.commands[i];
		const size_t at = hook_programs_word(c);
		/* Python also looks there for a module that would only check. */
		bool python = at < c->n_words &&
		              hook_programs_list("python*", path_base(c->words[at].text));
		if (at < c->n_words && (python || hook_programs_interpreter(c) <= at) &&
		    hook_skill_names(&j->places, &HERE, &j->skill)) {
			return true;
		}
	}
	return false;
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

/* `cd $X && ./main.py` */
static bool starts_relative(const struct hook_command *c)
{
	size_t program = hook_programs_word(c), at = program;

	if (at < c->n_words && hook_programs_interpreter(c) == at) {
		at++;
	}
	return at < c->n_words && !hook_programs_list("/* -*", c->words[at].text) &&
	       (at > program || strchr(c->words[at].text, '/') != NULL);
}

/* May the command start a skill's file that it does not name? */
static bool reaches_skill(struct judging *j, const struct hook_command *c)
{
	bool unnamed =
	        hook_programs_start_unnamed(c, j->q->self) || (j->lost && starts_relative(c));

	for (size_t i = 0; i < c->n_words && !unnamed; i++) {
		unnamed = c->words[i].unknown && is_leading(&c->words[i]);
	}
	bool reaches = j->led || (unnamed && hook_skill_below(&j->places, &HERE, &j->skill));
	for (size_t i = 0; i < c->n_words && unnamed && !reaches; i++) {
		reaches = hook_skill_below(&j->places, &c->words[i], &j->skill);
	}
	return reaches;
}

/* The directory of the last command if all commands before it are `cd DIR &&`, and all words can
 * be written again. A name with ".." behind a symlink leads a shell elsewhere than the kernel.
 * Returns new, or NULL. */
static char *find_certain_place(const struct judging *j)
{
	auto_free char *at = realpath(j->q->cwd, NULL);

	for (size_t i = 0; i < j->n_read; i++) {
		const struct hook_command *c = &j->line.commands[i];
		bool plain = c->join == (i == 0 ? '\0' : '&');
		for (size_t k = 0; k < c->n_words + c->n_redirects; k++) {
			plain = plain && (k < c->n_words ? c->words[k].plain
			                                 : c->redirects[k - c->n_words].plain);
		}
		if (!plain || i + 1 == j->n_read) {
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
	auto_free char *dir = j->line.odd || j->places.too_many ? NULL : find_certain_place(j);

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
	for (size_t i = 0; i < (j->line.odd ? j->line.n_commands : j->n_read); i++) {
		if (reaches_skill(j, &j->line.commands[i])) {
			return give_reason(j, HOOK_ASK,
			                   "this may start a file that it does not name");
		}
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

static enum hook_answer judge_line(struct judging *j)
{
	bool within = interprets_in_skill(j);

	bool looks = j->looks && !j->line.odd;
	if (!within && !j->places.too_many && (looks || !line_names(j))) {
		return judge_unnamed(j);
	}
	if (rewrite_line(j)) {
		return HOOK_REWRITE;
	}
	for (size_t i = 0; i < j->n_read && !j->line.odd; i++) {
		const struct hook_command *c = &j->line.commands[i];
		if (!hook_programs_look(c, j->q->self) && starts_named(j, c)) {
			return give_reason(j, HOOK_DENY,
			                   "this would start, outside the sandbox, a file");
		}
	}
	return give_reason(j, HOOK_ASK, "this names files, and may start some,");
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
	hook_skill_places_done(&j.places);
	hook_line_done(&j.line);
	free(j.skill);
	return a;
}
