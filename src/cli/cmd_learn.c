/* cmd_learn.c - runs a skill with decoys, and writes the manifest that it needs.
 *
 * While the skill runs, only the progress is printed. The skill's output follows when it has ended.
 * Each line of the output has a bar before it, and its characters are made visible, so that it
 * cannot look like a question of this program. Keys that were pressed while the skill ran do
 * not answer a question. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/diag.h"
#include "base/error.h"
#include "base/own.h"
#include "base/visible.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/proposal.h"
#include "cli/run_watch.h"
#include "cli/say.h"
#include "cli/screen.h"
#include "learn/learn.h"
#include "learn/propose.h"
#include "policy/owner.h"

#define BAR         "  | "
#define SHOWN_LINES 40 /* most lines shown: of one round's output, and of each list */

struct talk {
	bool all;     /* show the output of every round, not only of the last one */
	char *output; /* output of the last round; owned */
	size_t output_len;
	bool output_cut;
	bool canary; /* the content of a decoy was in the output of a round */
	bool connect;
	uint64_t seconds; /* the time limit of a round */
	struct run_watcher watcher;
};

/* ---- the skill's output ----------------------------------------------------- */

static void show_output(const char *text, size_t len, bool cut)
{
	size_t lines = 0;
	auto_buf out = BUF(SAY_MAX);

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
	(void)screen_rows(STDERR_FILENO, &out);
}

static void keep_output(struct talk *t, const struct learn_round *r)
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
		visible_addf(out, ": %s", n->danger);
	}
	buf_addc(out, '\n');
}

/* Returns whether the need is listed. Harmless programs are not listed, because every sandbox
 * contains them. */
static bool is_told(const struct need *n)
{
	return n->kind != NEED_PROGRAM || n->danger != NULL;
}

enum group { NEEDED, IN_VAIN, DANGEROUS, UNUSED };

static enum group find_group(const struct need *n)
{
	return n->hint && n->kind != NEED_ENV       ? UNUSED
	       : n->danger != NULL                  ? DANGEROUS
	       : n->kind == NEED_READ && n->missing ? IN_VAIN
	                                            : NEEDED;
}

static void begin_round(void *talk, const struct learn_begin *b)
{
	struct talk *t = talk;
	auto_buf out = BUF(SAY_MAX);

	t->seconds = b->seconds;
	buf_addf(&out, "starting round %u", b->number);
	if (b->left_out > 0) {
		buf_addf(&out, " without values for %zu variable%s", b->left_out,
		         b->left_out == 1 ? "" : "s");
	}
	if (b->made_up > 0) {
		buf_addf(&out, "%s with made-up values for %zu variable%s",
		         b->left_out > 0 ? " and" : "", b->made_up, b->made_up == 1 ? "" : "s");
	}
	if (b->seconds > 0) {
		buf_addf(&out, " (time limit: -t %llus)", (unsigned long long)b->seconds);
	}
	say_notef("%s", out.data != NULL ? out.data : "");
}

/* Says how a round ended: "round 1: exit status 0, 0.3 s, ". */
static void add_end(struct buf *out, const struct talk *t, const struct learn_round *r)
{
	bool waited = false;

	if (r->result->end != SSB_END_TIMEOUT) {
		buf_addf(out, "round %u: exit status %d, %.1f s, ", r->number,
		         r->result->exit_status, (double)r->result->duration_us / 1e6);
		return;
	}
	buf_addf(out, "round %u: it reached the time limit of %llu s (-t sets another)", r->number,
	         (unsigned long long)t->seconds);
	for (size_t i = 0; i < r->needs->n; i++) {
		waited |= r->needs->v[i].kind == NEED_NETWORK && !r->needs->v[i].hint;
	}
	buf_adds(out, waited && !t->connect
	                      ? "; it may wait for an answer from its hosts: --connect lets it "
	                        "reach them; "
	                      : "; ");
}

static void tell_round(void *talk, const struct learn_round *r)
{
	struct talk *t = talk;
	auto_buf out = BUF(SAY_MAX), end = BUF(SAY_MAX);
	size_t count = 0;

	run_watch_end(&t->watcher);
	for (size_t i = 0; i < r->n_fresh; i++) {
		const struct need *n = &r->needs->v[r->fresh[i]];
		if (is_told(n) && ++count <= SHOWN_LINES) {
			add_need(&out, n);
		}
	}
	if (count > SHOWN_LINES) {
		buf_addf(&out, "  ... and %zu more\n", count - SHOWN_LINES);
	}
	add_end(&end, t, r);
	say_notef("%s%s", end.data != NULL ? end.data : "",
	          count > 0        ? "it asked for"
	          : r->number == 1 ? "it asked for no file and no host"
	                           : "nothing new");
	(void)screen_text(STDERR_FILENO, &out);
	if (!r->in_vain) {
		keep_output(t, r);
	}
	if (t->all) {
		show_output(r->output, r->output_len, r->output_cut);
	}
}

/* ---- questions ------------------------------------------------------------------- */

static enum learn_word ask_need(void *talk, const struct need *n, bool can_be_real)
{
	static const struct {
		const char *word;
		enum learn_word means;
	} WORDS[] = { { "decoy", LEARN_DECOY }, { "d", LEARN_DECOY }, { "real", LEARN_REAL },
		      { "r", LEARN_REAL },      { "no", LEARN_NO },   { "n", LEARN_NO },
		      { "", LEARN_NO } };
	static const char HELP[] =
	        "  decoy: the next round gets made-up content there; the manifest asks for it\n"
	        "  real:  the next rounds can read the real file, or reach the real host\n"
	        "  no:    the skill gets nothing there; the manifest mentions it only in a "
	        "comment\n";
	char line[32] = "";
	auto_buf out = BUF(SAY_MAX);

	(void)talk;
	buf_adds(&out, "skillsandbox: ");
	need_text(&out, n);
	buf_adds(&out, can_be_real ? "? [d]ecoy, [r]eal (only while learning), [N]o: "
	                           : "? [d]ecoy, [N]o: ");
	while (!out.failed && ask_line(out.data, line, sizeof(line))) {
		for (size_t i = 0; i < ARRAY_LEN(WORDS); i++) {
			if (strcmp(line, WORDS[i].word) == 0 &&
			    (WORDS[i].means != LEARN_REAL || can_be_real)) {
				return WORDS[i].means;
			}
		}
		auto_buf help = BUF(SAY_MAX);
		buf_adds(&help, HELP);
		(void)say_out(STDERR_FILENO, &help);
	}
	return LEARN_NO;
}

/* ---- the end ------------------------------------------------------------------------ */

static void say_needs(const struct learned *l, enum group group, const char *head)
{
	size_t count = 0;
	auto_buf out = BUF(SAY_MAX);

	for (size_t i = 0; i < l->needs.n; i++) {
		const struct need *n = &l->needs.v[i];
		if (is_told(n) && find_group(n) == group && ++count <= SHOWN_LINES) {
			add_need(&out, n);
		}
	}
	if (count > SHOWN_LINES) {
		buf_addf(&out, "  ... and %zu more\n", count - SHOWN_LINES);
	}
	if (count > 0) {
		say_notef("%s", head);
		(void)screen_text(STDERR_FILENO, &out);
	}
}

/* Warns if the skill looked for secrets and also connects: any of these hosts could have got the
 * secrets. Connections are encrypted, so the record does not show which host got them. */
static void warn_of_both(const struct learned *l)
{
	size_t secrets = 0;
	size_t hosts = 0;

	for (size_t i = 0; i < l->needs.n; i++) {
		const struct need *n = &l->needs.v[i];
		secrets += n->kind == NEED_READ && n->danger != NULL && !n->hint && !n->vain;
		hosts += n->kind == NEED_NETWORK && n->port != 0 && !n->hint;
	}
	if (secrets > 0 && hosts > 0) {
		say_warningf("the skill looked for secrets (%zu) and connects to hosts (%zu): read "
		             "its code before "
		             "you approve it",
		             secrets, hosts);
	}
}

/* Warns that the last round failed, and names options that could get the skill further. */
static void warn_of_failure(const struct talk *t, const struct learned *l)
{
	auto_buf out = BUF(SAY_MAX);
	bool hosts = false;

	for (size_t i = 0; i < l->needs.n; i++) {
		const struct need *n = &l->needs.v[i];
		hosts |= n->kind == NEED_NETWORK && !n->hint;
		if (n->kind == NEED_READ && !n->hint && find_group(n) == NEEDED && out.len == 0) {
			buf_adds(&out, "; to show it a real file: --read ");
			say_word(&out, n->value);
		}
	}
	buf_adds(&out, hosts && !t->connect ? "; to let it reach its hosts: --connect" : "");
	say_warningf("the last round ended with exit status %d, so the skill may need more than it "
	             "showed%s",
	             l->exit_status, out.data != NULL ? out.data : "");
}

/* Prints what the skill needs, and what will not be in the manifest. */
static void say_summary(const struct talk *t, const struct learned *l)
{
	if (!t->all) {
		show_output(t->output, t->output_len, t->output_cut);
	}
	if (l->canceled) {
		say_warningf("learning was stopped; it is not known what the skill would have "
		             "asked for later");
	} else if (!l->settled) {
		say_warningf("after %u rounds the skill still asked for new things; run learn "
		             "again to continue",
		             l->rounds);
	}
	if (l->timed_out) {
		say_warningf("the last round was ended after %llu s, so the skill may need more "
		             "than it showed",
		             (unsigned long long)t->seconds);
	} else if (l->exit_status != 0) {
		warn_of_failure(t, l);
	}
	if (l->needs.cut) {
		say_warningf("the skill asked for more things than can be recorded");
	}
	if (t->canary) {
		say_warningf(
		        "the skill's output contains the text of a decoy: the skill reads secrets");
	}
	say_needs(l, NEEDED, "it needs:");
	say_needs(l, IN_VAIN,
	          "it looked for things that do not exist (a comment in the manifest lists them):");
	say_needs(l, DANGEROUS,
	          "it asked for things that are dangerous, or that you declined; the manifest "
	          "lists them only in a comment:");
	say_needs(l, UNUSED,
	          "its files mention things that it did not use now; the manifest lists them "
	          "only in a comment:");
	warn_of_both(l);
}

static void talk_done(struct talk *t)
{
	run_watch_end(&t->watcher);
	free(t->output);
	*t = (struct talk){ 0 };
}

/* ---- the command ------------------------------------------------------------ */

static int propose_needs(const struct request *r, const struct owner *owner, const char *dir,
                         struct learned *l, struct ssb_error *err)
{
	auto_buf text = BUF(MAX_YAML_BYTES);
	const char *head =
	        "Learned by 'skillsandbox learn': what the skill asked for, and no more.";

	if (proposal_name(r, dir, l->base.manifest, err) != 0) {
		return -1;
	}
	if (propose_manifest(l->base.manifest, &l->needs, head, &text) != 0) {
		return ssb_fail(err, SSB_E_LIMIT, 0, "learn",
		                "the skill asks for more than a manifest can contain");
	}
	return proposal_put(r, owner, dir, &text, err);
}

static bool can_show_progress(void)
{
	const char *term = getenv("TERM");

	return isatty(STDERR_FILENO) == 1 && term != NULL && strcmp(term, "dumb") != 0;
}

static int learn_and_say(struct request *r, const struct owner *owner, const char *dir,
                         struct ssb_error *err)
{
	AUTO(talk_done) struct talk talk = { 0 };
	AUTO(learned_done) struct learned l = { 0 };
	AUTO(diags_freep) struct ssb_diags *diags = ssb_diags_new();
	bool interactive = request_has(r, FLAG_INTERACTIVE);
	char **args = r->operands.v + 1;
	struct learn_setup setup = {
		.owner = owner,
		.dir = dir,
		.args = args[0] != NULL && strcmp(args[0], "--") == 0 ? args + 1 : args,
		.options = r->options,
		.diags = diags,
		.connect = request_has(r, FLAG_CONNECT),
		.begun = begin_round,
		.told = tell_round,
		.ask = interactive ? ask_need : NULL,
		.arg = &talk,
	};

	if (can_show_progress()) {
		setup.watch = (struct ssb_watch){ run_watch_start, &talk.watcher };
	}
	talk.connect = setup.connect;
	talk.watcher.progress = true;
	talk.all = interactive || request_has(r, FLAG_VERBOSE);
	int failed = learn(&setup, &l, err);
	if (diags != NULL) {
		say_diags(diags, SSB_ALARM);
	}
	if (failed != 0) {
		return -1;
	}
	say_summary(&talk, &l);
	return propose_needs(r, owner, dir, &l, err);
}

int cmd_learn(struct request *r)
{
	AUTO(owner_done) struct owner owner = { 0 };
	struct ssb_error err = { 0 };

	if (r->operands.n < 1 || r->operands.dashes) {
		return say_fail(EXIT_USAGE, "learn needs a DIR");
	}
	if (request_has(r, FLAG_INTERACTIVE) && !ask_terminal()) {
		return say_fail(EXIT_USAGE, "learn --interactive needs a terminal");
	}
	auto_free char *dir = realpath(r->operands.v[0], NULL);
	if (dir == NULL) {
		return say_fail(EXIT_SANDBOX, "%s: directory not found", r->operands.v[0]);
	}
	/* Finds the place of the manifest first: if there is none, the skill must not run. */
	auto_free char *place = NULL;
	if (owner_load(&owner, &err) != 0 || proposal_place(r, &owner, dir, &place, &err) != 0 ||
	    learn_and_say(r, &owner, dir, &err) != 0) {
		return exit_status_told(&err);
	}
	return EXIT_FINE;
}
