/* hook_reason.c - says what the user is asked about: what would be granted, or what may start. */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/own.h"
#include "base/shell_quote.h"
#include "base/visible.h"
#include "cli/hook.h"
#include "policy/path.h"

#define MAX_SAID  400 /* bytes of the line that a reason repeats */
#define MAX_TRIED 64  /* words of a line that may be the script */
#define REVOKES   " ([^;|]* )?--revoke "

/* What a command of ours would do, behind its verb. Behind that stands which skill (NULL: it is not
 * said; else the words if none is known), then the options that match. */
static const struct {
	const char *call, *would, *other, *options;
	bool terminal; /* the owner can type it at a terminal instead */
} DECISIONS[] = {
	{ "approve" REVOKES, "take back the approval of ", "a skill", NULL, false },
	{ "approvals" REVOKES, "take back the approval of ", "a skill", NULL, false },
	{ "allow" REVOKES, "take back what is allowed for ", "a skill", NULL, false },
	{ "approve ", "approve ", "a skill", NULL, true },
	{ "allow ", "allow ", "a skill", "^-", true },
	{ "setup ", "change what an agent starts, by setup ", "", "^-", false },
	{ "session resume ", "resume a session", NULL, NULL, false },
	{ "audit prune ", "delete records of runs", NULL, NULL, false },
	{ HOOK_GRANTS("(run|shell)"), "grant ", "a command", "^" HOOK_GRANTING, false },
	{ HOOK_GRANTS("serve"), "grant all skills that it serves", NULL, "^" HOOK_GRANTING, false },
	{ HOOK_GRANTS("(learn|init)"), "write or widen what is allowed for ", "a skill", NULL,
	  false },
};

struct said {
	char *skill, *word; /* the directory; the name of a file in it, or an operand; or NULL */
	struct buf words;   /* the options with a blank in front of each, or how to run the file */
};

static void said_done(struct said *n)
{
	buf_done(&n->words);
	free(n->skill);
	free(n->word);
}

/* Reads the operands and options of a command, up to "--". */
static void read_call(const struct hook_skills *s, const char *at, const char *options,
                      struct said *c)
{
	bool value = false, file = false; /* the next word is of an option, of a redirection */

	for (size_t n = 0; strchr(";|", at[0]) == NULL; at += n + (at[n] == ' ')) {
		n = strcspn(at, " ");
		auto_free char *word = hook_must(strndup(at, n)), *name = NULL;
		bool redirects = strchr("<>", word[0]) != NULL;
		if (file || redirects ||
		    (strspn(word, "0123456789") == n && strchr("<>", at[n + 1]) != NULL)) {
			file = redirects;
			continue;
		}
		if (strcmp(word, "--") == 0) {
			break;
		}
		if (options != NULL && (value || hook_line_matches(word, options))) {
			buf_addf(&c->words, " %s", word);
		} else if (word[0] != '-') {
			c->skill = c->skill == NULL ? hook_skill_at(s, word, &name) : c->skill;
			c->word = c->word == NULL ? hook_must(strdup(word)) : c->word;
		}
		value = hook_line_matches(word, "^(-[a-z]*[rw]|--(" HOOK_VALUED "))$");
	}
}

static void say_call(const struct hook_skills *s, size_t i, struct said *c, struct buf *out)
{
	const char *words = c->words.len > 0 ? c->words.data : "", *other = DECISIONS[i].other;
	const bool skill = other != NULL && c->skill != NULL;
	const char *which = other == NULL ? "" : skill ? path_base(c->skill) : c->word;
	const bool exact = !hook_line_matches(words, "[^A-Za-z0-9 =/.:_-]") && !c->words.failed;
	auto_buf self = BUF(4 * MAX_PATH_BYTES);

	char *mask = c->words.data;
	while (mask != NULL && (mask = strchr(mask, HOOK_MASK[0])) != NULL) {
		*mask = '_';
	}
	if (which == NULL || strlen(which) > MAX_SAID ||
	    strpbrk(which, "$*?[{," HOOK_MASK) != NULL) {
		which = other;
	}
	visible_addf(out, "skillsandbox: this would %s%s%s%s%s", DECISIONS[i].would,
	             skill ? "the skill " : "", which, words[0] != '\0' ? ":" : "", words);
	if (DECISIONS[i].terminal && skill && exact) {
		shell_quote(&self, s->q->self);
		buf_addf(&self, " %s", DECISIONS[i].call);
		shell_quote(&self, c->skill);
		visible_addf(out, "; %sit yourself at a terminal: %s%s", DECISIONS[i].would,
		             self.failed ? "" : self.data, words);
	}
}

bool hook_reason_decision(const struct hook_skills *s, const char *text, struct buf *out)
{
	/* Behind our name, or, if that is another or only a shell knows it, anywhere. */
	static const char *const BEFORE[] = { "skillsandbox( [^;|]*)? ", "() " };
	regmatch_t m[3] = { 0 };

	for (size_t k = 0; k < 2 * ARRAY_LEN(DECISIONS); k++) {
		size_t i = k % ARRAY_LEN(DECISIONS);
		auto_buf ere = BUF(MAX_SHELL_BYTES);
		buf_addf(&ere, "%s(%s)", BEFORE[k / ARRAY_LEN(DECISIONS)], DECISIONS[i].call);
		if (hook_line_find(text, hook_must(ere.data), 3, m)) {
			AUTO(said_done) struct said c = { .words = BUF(MAX_SAID) };
			read_call(s, strchr(text + m[2].rm_so, ' ') + 1, DECISIONS[i].options, &c);
			say_call(s, i, &c, out);
			return true;
		}
	}
	return false;
}

/* The words behind the script at `at`, as they are in the line; new. NULL: they are not known. */
static char *copy_arguments(const char *line, const char *at)
{
	bool within = false; /* a quoted text */
	regmatch_t m[1] = { 0 };

	for (const char *c = line; c < at; c++) {
		within ^= *c == '\'' || *c == '"';
	}
	(void)hook_line_find(at, within ? "^([ \t]+" HOOK_BARE "+)*" : "^([ \t]+" HOOK_WORD "+)*",
	                     1, m);
	size_t n = (size_t)m[0].rm_eo, blanks = strspn(at + n, " \t");
	if (strchr(within && blanks == 0 ? "'\";|&\n>)" : ";|&\n>)", at[n + blanks]) == NULL) {
		return NULL;
	}
	bool stream = at[n] == '>' && n > 1 && strspn(at + n - 1, "012") == 1 && at[n - 2] == ' ';
	return n < MAX_SAID ? hook_must(strndup(at, n - (stream ? 2 : 0))) : NULL;
}

/* Finds the first file of a skill among the words of the line, whatever quotes are around them. */
static void find_file(const struct hook_skills *s, const struct hook_name names[], struct said *ret)
{
	static const char *const ENDS = " \t\n'\"`();|&<>=";
	size_t tried = 0, n = 0;

	for (const char *at = s->q->command; *at != '\0' && tried < MAX_TRIED; at += n) {
		at += strspn(at, ENDS);
		n = strcspn(at, ENDS);
		auto_free char *flat = hook_line_read(at, n, names, HOOK_SHOWN), *name = NULL;
		flat[strlen(flat) - strlen(" ; ")] = '\0';
		char *skill = hook_skill_at(s, flat + strlen(" ; "), &name);
		tried += skill != NULL;
		if (skill != NULL && (ret->skill == NULL || ret->word[0] == '\0')) {
			said_done(ret);
			*ret = (struct said){ skill, name, BUF(4 * MAX_PATH_BYTES) };
			bool quoted = strchr("'\"", at[n]) != NULL && at[n] != '\0';
			auto_free char *args = copy_arguments(s->q->command, at + n + quoted);
			if (args != NULL &&
			    hook_skill_run(s, "", flat + 3, args[0] != '\0', &ret->words)) {
				buf_adds(&ret->words, args);
			}
			name = NULL;
		} else {
			free(skill);
		}
	}
}

void hook_reason_skill(const struct hook_skills *s, const struct hook_name names[], bool named,
                       struct buf *out)
{
	AUTO(said_done) struct said f = { 0 };
	auto_buf self = BUF(4 * MAX_PATH_BYTES);

	if (named) {
		find_file(s, names, &f);
	}
	const char *skill = f.skill != NULL ? f.skill : s->found;
	bool file = f.word != NULL && f.word[0] != '\0';
	visible_addf(out, "skillsandbox: this %s%s of ",
	             named ? "names " : "may start a file that it does not name, such as ",
	             file    ? f.word
	             : named ? "files"
	                     : "one");
	visible_addf(out, skill != NULL ? "the skill %s (%s)" : "a skill%s%s",
	             skill != NULL ? path_base(skill) : "", skill != NULL ? skill : "");
	visible_addf(out, "%s outside the sandbox; call the tool run_skill instead",
	             !named ? ","
	             : file ? ", and may start it"
	                    : ", and may start one");
	if (f.words.len > 0) {
		shell_quote(&self, s->q->self);
		buf_addf(&self, " run %s", f.words.data);
		visible_addf(out, ", or write this in its place: %s", self.failed ? "" : self.data);
	}
}
