#include "cli/learn_talk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/own.h"
#include "base/visible.h"
#include "cli/say.h"

#define BAR         "  | "
#define SHOWN_LINES 40 /* of a round's output */

/* ---- the skill's output ----------------------------------------------------- */

static void show_output(const char *text, size_t len, bool cut)
{
	size_t lines = 0;
	auto_buf out;

	buf_init(&out, SAY_MAX);
	while (len > 0 && lines < SHOWN_LINES) {
		const char *end = memchr(text, '\n', len);
		size_t n = end != NULL ? (size_t)(end - text) : len;
		buf_adds(&out, BAR);
		visible_bytes(&out, text, n, false);
		buf_addc(&out, '\n');
		n += end != NULL;
		text += n;
		len -= n;
		lines++;
	}
	if (len > 0 || cut) {
		buf_adds(&out, BAR "...\n");
	}
	(void)say_out(STDERR_FILENO, &out);
}

static void keep_output(struct learn_talk *t, const struct learn_round *r)
{
	free(t->output);
	t->output = r->output_len > 0 ? malloc(r->output_len) : NULL;
	t->output_len = t->output != NULL ? r->output_len : 0;
	t->output_cut = r->output_cut;
	if (t->output != NULL) {
		memcpy(t->output, r->output, r->output_len);
	}
	t->canary |= r->canary;
}

/* ---- needs --------------------------------------------------------------------- */

static void add_need(struct buf *out, const struct need *n)
{
	buf_adds(out, "  ");
	need_text(out, n);
	if (n->danger != NULL) {
		buf_adds(out, ": ");
		visible_text(out, n->danger, false);
	}
	buf_addc(out, '\n');
}

void learn_told(void *talk, const struct learn_round *r)
{
	struct learn_talk *t = talk;
	auto_buf out;

	buf_init(&out, SAY_MAX);
	say_notef("round %u: exit status %d, %.1f s, %s", r->number, r->result->exit_status,
	          (double)r->result->duration_us / 1e6,
	          r->n_fresh > 0 ? "it asked for" : "nothing new");
	for (size_t i = 0; i < r->n_fresh; i++) {
		add_need(&out, &r->needs->v[r->fresh[i]]);
	}
	(void)say_out(STDERR_FILENO, &out);
	keep_output(t, r);
	if (t->all) {
		show_output(r->output, r->output_len, r->output_cut);
	}
}

/* ---- questions ------------------------------------------------------------------- */

/* The first letter of a line, which must hold no more than its word; 0: none. */
static char read_answer(void)
{
	char line[32] = "";

	(void)tcflush(STDIN_FILENO, TCIFLUSH);
	if (fgets(line, sizeof(line), stdin) == NULL || strchr(line, '\n') == NULL) {
		return '\0';
	}
	line[strcspn(line, "\n")] = '\0';
	static const char *const WORDS[] = { "decoy", "real", "no" };
	for (size_t i = 0; i < ARRAY_LEN(WORDS); i++) {
		if (strcmp(line, WORDS[i]) == 0 || (line[0] == WORDS[i][0] && line[1] == '\0')) {
			return WORDS[i][0];
		}
	}
	return '\0';
}

enum learn_word learn_asked(void *talk, const struct need *n, bool can_be_real)
{
	auto_buf out;

	(void)talk;
	buf_init(&out, SAY_MAX);
	buf_adds(&out, "skillsandbox: ");
	need_text(&out, n);
	buf_adds(&out,
	         can_be_real ? "? decoy, real (in this learning), or no: " : "? decoy, or no: ");
	(void)say_out(STDERR_FILENO, &out);
	char c = read_answer();
	return c == 'd' ? LEARN_DECOY : c == 'r' && can_be_real ? LEARN_REAL : LEARN_NO;
}

/* ---- the end ------------------------------------------------------------------------ */

/* Those that were tried, or are variables; dangerous ones, or the others. */
static size_t add_needs(struct buf *out, const struct needs *s, bool danger)
{
	size_t count = 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct need *n = &s->v[i];
		if ((n->danger != NULL) == danger && (!n->hint || n->kind == NEED_ENV)) {
			add_need(out, n);
			count++;
		}
	}
	return count;
}

static void say_needs(const struct learned *l, bool danger, const char *head)
{
	auto_buf out;

	buf_init(&out, SAY_MAX);
	if (add_needs(&out, &l->needs, danger) > 0) {
		say_notef("%s", head);
		(void)say_out(STDERR_FILENO, &out);
	}
}

void learn_summary(const struct learn_talk *t, const struct learned *l)
{
	if (!t->all) {
		show_output(t->output, t->output_len, t->output_cut);
	}
	if (l->canceled) {
		say_warningf("it was ended; what it would have asked for later is not known");
	} else if (!l->settled) {
		say_warningf("after %u rounds it still asked for new things; learn again to go on",
		             l->rounds);
	}
	if (l->exit_status != 0) {
		say_warningf("its last round ended with exit status %d, so it may need more than "
		             "it showed",
		             l->exit_status);
	}
	if (l->needs.cut) {
		say_warningf("it asked for more than is kept");
	}
	if (t->canary) {
		say_warningf("its output held what was in a decoy: it reads secrets");
	}
	say_needs(l, false, "it needs:");
	say_needs(l, true, "dangerous, and left out (a comment in the manifest says what it was):");
}

void learn_talk_done(struct learn_talk *t)
{
	free(t->output);
	*t = (struct learn_talk){ 0 };
}
