/* learn.c - runs the rounds of a learning run. */
#include "learn/learn.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "learn/learn_priv.h"
#include "learn/start.h"
#include "os/clock.h"
#include "policy/decide.h"
#include "policy/danger.h"
#include "policy/path.h"
#include "sandbox/sandbox.h"

/* Ports at which the broker listens from the first round. If the skill connects to another
 * port, the observer sees it, and the broker listens at this port in the next round. */
static const uint16_t PORTS[] = { 22, 25, 80, 443, 465, 587, 993, 8443 };

static void learner_done(struct learner *t)
{
	decoys_end(&t->decoys);
	learn_variables_done(t);
	needs_done(&t->barred);
	free(t->fresh);
	/* Cleared, because its members point to memory that was just freed. */
	t->s->options->learn = (struct learn_options){ 0 };
}

void learned_done(struct learned *l)
{
	skill_found_done(&l->base);
	needs_done(&l->needs);
}

/* ---- stand-ins --------------------------------------------------------------- */

static int give_path(struct learner *t, const char *asked, enum access access,
                     struct ssb_error *err)
{
	auto_free char *path = path_expand(t->s->owner, asked);
	bool fresh = false;

	if (path == NULL) {
		return learn_no_memory(err);
	}
	return path[0] == '/' && !learn_is_granted(t, path)
	               ? decoys_add(&t->decoys, t->s->owner, path, access, &fresh, err)
	               : 0;
}

static int give_real(struct learner *t, const struct need *n, struct ssb_error *err)
{
	auto_free char *host = NULL;

	if (n->kind == NEED_READ) {
		return ssb_options_set(t->s->options, SSB_OPT_READ, n->value, err);
	}
	if (asprintf(&host, "%s:%u", n->value, n->port != 0 ? n->port : 443U) < 0) {
		host = NULL;
		return learn_no_memory(err);
	}
	return ssb_options_set(t->s->options, SSB_OPT_NET, host, err);
}

/* Returns true if the owner may answer LEARN_REAL. This is never so for a secret, or for anything
 * to write. */
static bool can_be_real(const struct learner *t, const struct need *n)
{
	auto_free char *path = path_expand(t->s->owner, n->value);

	if (n->danger != NULL) {
		return false;
	}
	return n->kind == NEED_NETWORK ||
	       (n->kind == NEED_READ && path != NULL && access(path, R_OK) == 0 &&
	        danger_named(t->s->owner->home, path) == NULL);
}

static int hear_port(struct learner *t, uint16_t port)
{
	struct learn_options *o = &t->s->options->learn;

	for (size_t i = 0; i < o->n_ports; i++) {
		if (o->ports[i] == port) {
			return 0;
		}
	}
	if (port != 0 && o->n_ports < MAX_LEARN_PORTS) {
		o->ports[o->n_ports++] = port;
	}
	return 0;
}

/* Called if the owner answered LEARN_NO: the need is proposed only as a comment, with this
 * reason. */
static int decline_need(struct learner *t, struct need *n, struct ssb_error *err)
{
	char *why = strdup("you said no to it during learn");

	if (why == NULL) {
		return learn_no_memory(err);
	}
	free((void *)(uintptr_t)n->danger);
	n->danger = why;
	return needs_add(&t->barred, n) != 0 ? learn_no_memory(err) : 0;
}

static int answer_need(struct learner *t, struct need *n, struct ssb_error *err)
{
	if (n->vain) {
		/* A stand-in would not help, and a writable one would hide sockets that are
		 * there. */
		return 0;
	}
	const struct learn_setup *s = t->s;
	bool real = can_be_real(t, n);
	bool asked = s->ask != NULL && n->kind != NEED_PROGRAM && n->kind != NEED_SYSCALL &&
	             n->kind != NEED_ARGUMENTS;
	enum learn_word word = asked ? s->ask(s->arg, n, real) : LEARN_DECOY;

	if (word == LEARN_NO) {
		return n->kind == NEED_ENV && learn_variable_add(t, n->value, true, err) != 0
		               ? -1
		               : decline_need(t, n, err);
	}
	if (word == LEARN_REAL && real) {
		return give_real(t, n, err);
	}
	switch (n->kind) {
	case NEED_READ:
	case NEED_WRITE:
		return give_path(t, n->value, n->kind == NEED_WRITE ? ACCESS_WRITE : ACCESS_READ,
		                 err);
	case NEED_ENV:
		return learn_variable_add(t, n->value, n->optional, err);
	case NEED_NETWORK:
		return hear_port(t, n->port);
	case NEED_ARGUMENTS: /* the run shows these files already */
	case NEED_PROGRAM:
	case NEED_SYSCALL:
		break;
	}
	return 0;
}

/* ---- a round ---------------------------------------------------------------------- */

static void tell_round(struct learner *t, const struct ssb_result *result, int out)
{
	auto_free char *text = malloc(MAX_LEARN_OUTPUT);
	ssize_t n = text != NULL ? pread(out, text, MAX_LEARN_OUTPUT, 0) : 0;
	const struct learn_round r = {
		.number = t->l->rounds,
		.result = result,
		.needs = &t->l->needs,
		.fresh = t->fresh,
		.n_fresh = t->n_fresh,
		.in_vain = t->trial && result->exit_status != 0 && t->n_fresh == 0,
		.output = text,
		.output_len = n > 0 ? (size_t)n : 0,
		.output_cut = lseek(out, 0, SEEK_END) > MAX_LEARN_OUTPUT,
		.canary = n > 0 && decoys_shown(&t->decoys, text, (size_t)n),
	};

	if (t->s->told != NULL) {
		t->s->told(t->s->arg, &r);
	}
}

static int make_plan(struct learner *t, struct ssb_plan **ret, struct ssb_error *err)
{
	struct learn_options *o = &t->s->options->learn;

	if (learn_variables_set(t, err) != 0) {
		return -1;
	}
	o->mode = t->s->connect ? LEARNING_CONNECT : LEARNING_CLOSED;
	o->stand_ins = t->decoys.v;
	o->n_stand_ins = t->decoys.n;
	memcpy(o->canary, t->decoys.canary, sizeof(o->canary));
	const struct plan_request q = {
		.owner = t->s->owner, .options = t->s->options, .skill = t->s->dir, .args = t->args
	};
	if (plan_decide(&q, ret, NULL, err) != 0) {
		return -1;
	}
	if ((*ret)->n_refusals > 0) {
		const struct refusal *r = &(*ret)->refusals[0];
		return ssb_fail(err, SSB_E_POLICY, 0, r->where, "%.100s is refused: %.200s",
		                r->what, r->why);
	}
	return 0;
}

static void announce_round(const struct learner *t, uint64_t seconds)
{
	size_t all = 0, given = learn_variables_given(t);

	for (size_t i = 0; i < t->n_variables; i++) {
		all += t->variables[i].pair != NULL;
	}
	const struct learn_begin b = { .number = t->l->rounds + 1,
		                       .made_up = t->bare ? 0 : given,
		                       .left_out = t->bare ? all : all - given,
		                       .seconds = seconds };
	if (t->s->begun != NULL) {
		t->s->begun(t->s->arg, &b);
	}
}

static int play_round(struct learner *t, struct ssb_error *err)
{
	AUTO(plan_freep) struct ssb_plan *plan = NULL;
	AUTO(needs_done) struct needs seen = { 0 };
	auto_fd out = memfd_create("learn", MFD_CLOEXEC);
	const int stdio[3] = { -1, out, out };
	struct ssb_result result = { 0 };

	if (out < 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "learn", "memfd_create");
	}
	if (make_plan(t, &plan, err) != 0) {
		return -1;
	}
	struct run_request q = run_request_of(plan, stdio);
	q.owner = t->s->owner;
	if (t->s->watch.on_record != NULL) {
		run_request_watch(&q, t->s->watch);
	}
	announce_round(t, q.max_seconds);
	if (sandbox_run(&q, &result, NULL, err) != 0) {
		return -1;
	}
	t->l->rounds++;
	t->end = result.end;
	t->l->timed_out = result.end == SSB_END_TIMEOUT;
	t->l->exit_status = result.exit_status;
	t->l->canceled = result.end == SSB_END_CANCELED;
	if (needs_from_run(t->s->owner, result.run_id, &seen, err) != 0 ||
	    learn_take(t, &seen, err) != 0) {
		return -1;
	}
	tell_round(t, &result, out);
	return 0;
}

static int answer_all(struct learner *t, struct ssb_error *err)
{
	for (size_t i = 0; i < t->n_fresh; i++) {
		if (answer_need(t, &t->l->needs.v[t->fresh[i]], err) != 0) {
			return -1;
		}
	}
	return 0;
}

/* Plays rounds until one shows nothing new. */
static int play_until_settled(struct learner *t, struct ssb_error *err)
{
	while (t->l->rounds < t->limit && clock_ms() < t->until) {
		if (play_round(t, err) != 0) {
			return -1;
		}
		if (t->n_fresh == 0 || t->l->canceled) {
			t->l->settled = t->n_fresh == 0 && !t->l->canceled && !t->l->needs.cut;
			return 0;
		}
		if (answer_all(t, err) != 0) {
			return -1;
		}
	}
	t->l->settled = false;
	return 0;
}

/* Leaves out one value. If that does not help, the next round uses it again. */
static int try_without(struct learner *t, struct learn_variable *v, struct ssb_error *err)
{
	int before = t->l->exit_status;

	v->left_out = t->trial = true;
	t->limit++;
	if (play_round(t, err) != 0 || answer_all(t, err) != 0) {
		return -1;
	}
	t->trial = false;
	v->left_out = t->l->exit_status == 0 || t->n_fresh > 0;
	if (!v->left_out) {
		t->l->exit_status = before;
	}
	return t->n_fresh > 0 ? play_until_settled(t, err) : 0;
}

/* The skill failed with made-up values. If it succeeded without any (`all`), all variables are
 * optional. Otherwise leaves out one variable at a time. */
static int find_optional(struct learner *t, bool all, struct ssb_error *err)
{
	unsigned trials = 0;

	for (size_t i = 0; all && i < t->n_variables; i++) {
		t->variables[i].left_out = true;
	}
	if (all) {
		t->limit++;
		return play_until_settled(t, err);
	}
	for (size_t i = 0; i < t->n_variables && trials < MAX_LEARN_TRIALS; i++) {
		struct learn_variable *v = &t->variables[i];
		if (v->pair == NULL || v->left_out) {
			continue;
		}
		if (t->l->exit_status == 0 || t->end != SSB_END_EXITED || clock_ms() >= t->until) {
			break;
		}
		trials++;
		if (try_without(t, v, err) != 0) {
			return -1;
		}
	}
	return 0;
}

static int play_rounds(struct learner *t, struct ssb_error *err)
{
	bool fine = false; /* the skill succeeded without any value */

	t->until = clock_ms() + MAX_LEARN_SECONDS * 1000ULL;
	t->limit = MAX_LEARN_ROUNDS;
	if (learn_variables_given(t) > 0) {
		t->bare = true;
		t->limit++;
		if (play_round(t, err) != 0 || answer_all(t, err) != 0) {
			return -1;
		}
		t->bare = false;
		fine = t->l->exit_status == 0;
	}
	if (!t->l->canceled && play_until_settled(t, err) != 0) {
		return -1;
	}
	bool failed = t->l->exit_status != 0 && t->end == SSB_END_EXITED;
	if (failed && learn_variables_given(t) > 0 && find_optional(t, fine, err) != 0) {
		return -1;
	}
	for (size_t i = 0; fine && i < t->n_variables; i++) {
		t->variables[i].left_out = true;
	}
	learn_variables_mark(t, &t->l->needs);
	return 0;
}

/* ---- before the first round -------------------------------------------------------- */

/* Returns true if the skill's files have a default for the variable. */
static bool has_default(const struct needs *hints, const char *name)
{
	return ARRAY_HAS(n, hints->v, hints->n,
	                 n->kind == NEED_ENV && n->optional && strcmp(n->value, name) == 0);
}

static int give_declared(struct learner *t, const struct needs *hints, struct ssb_error *err)
{
	const struct manifest *m = t->l->base.manifest;

	for (size_t i = 0; i < m->env.n; i++) {
		bool empty = has_default(hints, m->env.v[i].s);
		if (learn_variable_add(t, m->env.v[i].s, empty, err) != 0) {
			return -1;
		}
	}
	for (size_t i = 0; i < m->read.n + m->write.n; i++) {
		bool write = i >= m->read.n;
		const char *path = write ? m->write.v[i - m->read.n].s : m->read.v[i].s;
		if (give_path(t, path, write ? ACCESS_WRITE : ACCESS_READ, err) != 0) {
			return -1;
		}
	}
	for (size_t i = 0; i < m->n_egress; i++) {
		for (size_t k = 0; k < m->egress[i].n_ports; k++) {
			(void)hear_port(t, m->egress[i].ports[k]);
		}
	}
	return 0;
}

/* Gives values to the variables that the skill's files mention, except those for which the files
 * have a default. Only the files show which variables the skill needs, because reading the
 * environment cannot be observed. Other needs are seen when the skill runs. */
static int give_hinted(struct learner *t, struct needs *hints, struct ssb_error *err)
{
	for (size_t i = 0; i < hints->n; i++) {
		struct need *n = &hints->v[i];
		if (n->kind != NEED_ENV || learn_variable_known(t, n->value)) {
			continue;
		}
		if (answer_need(t, n, err) != 0) {
			return -1;
		}
		if (needs_add(&t->l->needs, n) != 0) {
			return learn_no_memory(err);
		}
	}
	return 0;
}

static int fail_no_script(const char *path, struct ssb_error *err)
{
	AUTO(skill_dir_close) struct skill_dir dir = SKILL_DIR_NONE;
	auto_buf names = BUF(160);

	if (skill_dir_open(path, &dir, err) != 0) {
		return -1;
	}
	skill_scripts(&dir, &names);
	return ssb_fail(err, SSB_E_USAGE, 0, "learn",
	                "after the skill's directory, name the script to run; the skill has: %s",
	                names.len > 0 ? names.data : "none");
}

/* Names the script explicitly for all rounds, if it was guessed. */
static int name_entry(struct learner *t, struct ssb_error *err)
{
	const struct skill_found *base = &t->l->base;
	const struct manifest *m = base->manifest;

	if (base->file != NULL || (t->args != NULL && t->args[0] != NULL)) {
		return base->no_entry ? fail_no_script(t->s->dir, err) : 0;
	}
	const char *script = m->args.n > 0 ? m->args.v[m->args.n - 1].s : m->command.s;
	const char *name = path_beneath(script, "/skill");
	t->entry[0] = (char *)(uintptr_t)name;
	t->args = t->entry;
	return 0;
}

static int begin_learning(struct learner *t, struct needs *hints, struct ssb_error *err)
{
	const struct learn_setup *s = t->s;
	struct learn_options *o = &s->options->learn;

	t->n_owner_env = s->options->env.n;
	memcpy(o->ports, PORTS, sizeof(PORTS));
	o->n_ports = ARRAY_LEN(PORTS);
	if (start_find(s->dir, s->owner->config_dir, s->args, hints, &t->l->base, s->diags, err) !=
	            0 ||
	    name_entry(t, err) != 0) {
		return -1;
	}
	if (hints_scan(s->dir, hints, err) != 0 || needs_judge(s->owner, s->dir, hints, err) != 0) {
		return -1;
	}
	return decoys_begin(s->owner, &t->decoys, err) != 0 ||
	                       ssb_options_set(s->options, SSB_OPT_TTY, "no", err) != 0 ||
	                       ssb_options_set(s->options, SSB_OPT_AUDIT, "full", err) != 0
	               ? -1
	               : 0;
}

int learn(const struct learn_setup *s, struct learned *ret, struct ssb_error *err)
{
	assert(s->owner != NULL && s->options != NULL && s->dir[0] == '/');

	AUTO(learner_done) struct learner t = { .s = s, .args = s->args, .l = ret };
	AUTO(needs_done) struct needs hints = { 0 };

	*ret = (struct learned){ 0 };
	if (begin_learning(&t, &hints, err) != 0 || give_declared(&t, &hints, err) != 0 ||
	    give_hinted(&t, &hints, err) != 0 || learn_lay_hints(&t, &hints, err) != 0) {
		return -1;
	}
	return play_rounds(&t, err) != 0 ? -1 : needs_weigh(s->owner, s->dir, &ret->needs, err);
}
