/* plans.c - a plan costs about as much as the start of a sandbox, and clients call the
 * same skill again and again.
 *
 * A kept plan is used as long as the bytes of the manifest and of the policy file are
 * the same, each granted path still names the object that was judged, and it is young:
 * what cannot be looked at cheaply (a symlink on the way to a grant, a new mount) is
 * judged anew after FRESH_MS. Whatever the answer, the sandbox mounts the object that
 * was judged and no other. */
#include "serve/plans.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <linux/openat2.h>

#include "base/diag.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/sha256.h"
#include "os/clock.h"
#include "os/file.h"
#include "policy/build.h"
#include "policy/options.h"
#include "policy/paths.h"

#define FRESH_MS 2000
#define BY       "MCP client, for a run or a session"

struct kept {
	uint8_t key[SHA256_BYTES];    /* of what was wished */
	uint8_t policy[SHA256_BYTES]; /* of the policy file */
	struct ssb_plan *plan;        /* NULL: free */
	uint64_t made_ms;
	uint64_t used; /* p->clock */
};

struct plans {
	struct serve *serve;
	struct kept v[MAX_PLANS];
	uint64_t clock;
};

/* Broken from the start, it would refuse every plan; one that breaks later does that. */
static int check_policy(const struct serve *s, struct ssb_error *err)
{
	AUTO(diags_freep) struct ssb_diags *diags = ssb_diags_new();
	AUTO(policy_done) struct policy policy;

	policy_init(&policy);
	return diags == NULL ? ssb_fail(err, SSB_E_NOMEM, 0, "policy", "out of memory")
	                     : policy_load(&s->owner, s->opt->owner, &policy, diags, err);
}

int plans_new(struct serve *s, struct plans **ret, struct ssb_error *err)
{
	if (check_policy(s, err) != 0) {
		return -1;
	}
	struct plans *p = calloc(1, sizeof(*p));

	if (p == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "plan", "out of memory");
	}
	p->serve = s;
	*ret = p;
	return 0;
}

static void forget(struct kept *k)
{
	ssb_plan_free(k->plan);
	*k = (struct kept){ 0 };
}

void plans_free(struct plans *p)
{
	for (size_t i = 0; p != NULL && i < ARRAY_LEN(p->v); i++) {
		forget(&p->v[i]);
	}
	free(p);
}

/* ---- what it was made from --------------------------------------------------- */

static void mix(struct sha256 *h, const char *s)
{
	sha256_update(h, s, strlen(s) + 1);
}

static size_t count_args(const struct plan_wish *w)
{
	size_t n = 0;

	while (w->args != NULL && w->args[n] != NULL) {
		n++;
	}
	return n;
}

/* How many there are of each goes first: an argument, which the client chooses, cannot stand
 * for what the owner was shown or took out. */
static void wish_key(const struct plan_wish *w, uint8_t ret[SHA256_BYTES])
{
	const size_t n_args = count_args(w);
	const size_t n_without = w->without != NULL ? w->without->n : 0;
	const uint64_t numbers[] = { w->narrow.offline,
		                     w->narrow.read_only,
		                     w->narrow.max_seconds,
		                     w->n_extra,
		                     n_args,
		                     w->consent != NULL,
		                     w->shown != NULL,
		                     n_without };
	struct sha256 h;

	sha256_init(&h);
	mix(&h, w->skill->dir);
	sha256_update(&h, numbers, sizeof(numbers));
	for (size_t i = 0; i < w->n_extra; i++) {
		sha256_update(&h, &w->extra[i].option, sizeof(w->extra[i].option));
		mix(&h, w->extra[i].value);
	}
	for (size_t i = 0; i < n_args; i++) {
		mix(&h, w->args[i]);
	}
	if (w->consent != NULL) {
		sha256_update(&h, w->consent->lock.files.tree, SHA256_BYTES);
		mix(&h, w->consent->lock.at);
	}
	mix(&h, w->shown != NULL ? w->shown : "");
	for (size_t i = 0; i < n_without; i++) {
		mix(&h, w->without->v[i]);
	}
	sha256_final(&h, ret);
}

/* Of the file's bytes; of none where it cannot be read, which is no plan's. */
static void file_key(int fd, uint8_t ret[SHA256_BYTES])
{
	auto_buf bytes;
	struct stat st;

	buf_init(&bytes, MAX_YAML_BYTES);
	memset(ret, 0, SHA256_BYTES);
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    file_read_all(fd, &bytes) == 0) {
		sha256(bytes.data, bytes.len, ret);
	}
}

static void policy_key(const struct serve *s, uint8_t ret[SHA256_BYTES])
{
	const char *named = s->opt->owner == NULL ? NULL : s->opt->owner->policy_file;
	auto_free char *file =
	        named != NULL ? strdup(named) : path_join(s->owner.config_dir, "policy.yaml");
	auto_fd fd = file == NULL || file[0] == '\0'
	                     ? -1
	                     : open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	file_key(fd, ret);
}

/* A skill of another format has none, and so is looked at anew each time: it is read from
 * several files. */
static bool same_manifest(const struct skill *skill, const struct ssb_plan *plan)
{
	uint8_t now[SHA256_BYTES];
	auto_fd dir = file_open_nosymlink(skill->dir, O_PATH | O_DIRECTORY);
	auto_fd fd = dir < 0 ? -1
	                     : file_openat2(dir, MANIFEST_FILE, O_RDONLY | O_NONBLOCK | O_NOCTTY,
	                                    RESOLVE_BENEATH);

	file_key(fd, now);
	return memcmp(now, plan->manifest_digest, sizeof(now)) == 0;
}

static bool same_grants(const struct ssb_plan *plan)
{
	for (size_t i = 0; i < plan->n_grants; i++) {
		const struct grant *g = &plan->grants[i];
		struct stat st;
		bool there = lstat(g->path, &st) == 0;
		if (there == g->create ||
		    (there && !object_same((struct object){ st.st_dev, st.st_ino },
		                           (struct object){ g->dev, g->ino }))) {
			return false;
		}
	}
	return true;
}

static bool is_fresh(const struct kept *k, const struct skill *skill,
                     const uint8_t policy[SHA256_BYTES])
{
	return clock_ms() - k->made_ms < FRESH_MS && memcmp(k->policy, policy, SHA256_BYTES) == 0 &&
	       same_manifest(skill, k->plan) && same_grants(k->plan);
}

/* ---- making one --------------------------------------------------------------- */

/* As consent_apply() does, of a copy that was found whole, or made, in an errand: to look at
 * each of its files again is not for the loop. */
static int apply_copied(const struct serve *s, const struct consent_found *f, struct ssb_options *o,
                        struct ssb_error *err)
{
	if (f->lock.snapshot) {
		o->skill_source = snapshot_path(&s->owner, &f->lock.files);
		if (o->skill_source == NULL) {
			return ssb_fail(err, SSB_E_NOMEM, 0, "approval", "out of memory");
		}
	}
	return consent_stay_out(&f->lock, &f->lock.asked, o, NULL, err);
}

/* What the owner was shown, without being kept: from its copy, where there is one. */
static int apply_shown(const struct serve *s, const struct plan_wish *w, struct ssb_options *o,
                       struct ssb_error *err)
{
	struct pinned shown = { 0 };

	if (w->shown != NULL && w->copied) {
		o->skill_source = digest_parse(w->shown, shown.tree)
		                          ? snapshot_path(&s->owner, &shown)
		                          : NULL;
		if (o->skill_source == NULL) {
			return ssb_fail(err, SSB_E_POLICY, 0, "approval",
			                "nobody knows what was shown");
		}
	}
	for (size_t i = 0; w->without != NULL && i < w->without->n; i++) {
		if (ssb_options_set(o, SSB_OPT_WITHHOLD, w->without->v[i], err) != 0) {
			return -1;
		}
	}
	return 0;
}

/* The owner's flags, and what the owner gave since. */
static int make_options(const struct serve *s, const struct plan_wish *w, struct ssb_options **ret,
                        struct ssb_error *err)
{
	const struct ssb_options *from = s->opt->owner;
	struct ssb_options *o = from != NULL ? options_copy(from) : ssb_options_new();

	*ret = o;
	if (o == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "plan", "out of memory");
	}
	if (from != NULL) {
		free(o->trace_output); /* each run has its own record */
		free(o->skill_source);
		o->trace_output = o->skill_source = NULL;
		o->tty = TTY_NO;
	}
	for (size_t i = 0; i < w->n_extra; i++) {
		if (w->extra[i].option != AS_IT_IS &&
		    ssb_options_set(o, w->extra[i].option, w->extra[i].value, err) != 0) {
			return -1;
		}
	}
	return w->consent == NULL ? apply_shown(s, w, o, err)
	       : w->copied        ? apply_copied(s, w->consent, o, err)
	                          : consent_apply(&s->owner, w->consent, o, err);
}

/* What is not asked for any more need not be allowed. */
static void drop_refusals(struct ssb_plan *p, enum refusal_kind kind)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n_refusals; i++) {
		struct refusal *f = &p->refusals[i];
		if (f->kind != kind) {
			p->refusals[n++] = *f;
		} else {
			refusal_done(f);
		}
	}
	p->n_refusals = n;
}

static void drop_network(struct ssb_plan *p)
{
	for (size_t i = 0; i < p->n_egress; i++) {
		free(p->egress[i].domain.s);
		free(p->egress[i].ports);
	}
	p->n_egress = 0;
	drop_refusals(p, REFUSAL_NETWORK);
}

/* A directory that would be made first is left out; a cover in it covers nothing. */
static void drop_grant(struct ssb_plan *p, size_t i)
{
	size_t n = 0;

	for (size_t k = 0; k < p->n_covers; k++) {
		if (p->covers[k].where != p->grants[i].where) {
			p->covers[n++] = p->covers[k];
			continue;
		}
		free(p->covers[k].path);
		free(p->covers[k].target);
	}
	p->n_covers = n;
	grant_done(&p->grants[i]);
	memmove(&p->grants[i], &p->grants[i + 1], (p->n_grants - i - 1) * sizeof(p->grants[0]));
	p->n_grants--;
}

static void drop_writes(struct ssb_plan *p)
{
	for (size_t i = p->n_grants; i > 0; i--) {
		struct grant *g = &p->grants[i - 1];
		if (g->create) {
			drop_grant(p, i - 1);
		} else {
			g->access = ACCESS_READ;
		}
	}
	drop_refusals(p, REFUSAL_WRITE);
}

/* Takes away from a finished plan: nothing that is done here can add to it. */
static void narrow(struct ssb_plan *p, const struct narrow *n)
{
	if (n->offline) {
		drop_network(p);
	}
	if (n->read_only) {
		drop_writes(p);
	}
	if (n->max_seconds > 0 && n->max_seconds < p->res.max_runtime_seconds) {
		p->res.max_runtime_seconds = n->max_seconds;
	}
}

/* The directory was found to be served; it may have become a link to another since. */
static int check_place(const struct ssb_plan *p, const struct skill *skill, struct ssb_error *err)
{
	return strcmp(p->skill_dir, skill->dir) == 0
	               ? 0
	               : ssb_fail(err, SSB_E_POLICY, 0, "skill",
	                          "'%.200s' was moved while it was looked at", skill->name);
}

static void freep_options(struct ssb_options **o)
{
	ssb_options_free(*o);
}

static void freep_plan(struct ssb_plan **p)
{
	ssb_plan_free(*p);
}

/* What was approved of what it lacks. */
static int lift(struct plans *p, const struct plan_wish *w, struct ssb_options *o,
                struct ssb_error *err)
{
	AUTO(freep_plan) struct ssb_plan *without = NULL;

	if (w->consent == NULL || w->consent->lock.n_grants == 0) {
		return 0;
	}
	return plan_build_skill(&p->serve->owner, o, w->skill->dir, w->args, &without, NULL, err) !=
	                       0
	               ? -1
	               : consent_lift(&p->serve->owner, w->consent, without, o, err);
}

static int make(struct plans *p, const struct plan_wish *w, struct ssb_plan **ret,
                struct ssb_diags *diags, struct ssb_error *err)
{
	AUTO(freep_options) struct ssb_options *o = NULL;
	AUTO(freep_plan) struct ssb_plan *plan = NULL;

	if (make_options(p->serve, w, &o, err) != 0 || lift(p, w, o, err) != 0 ||
	    plan_build_skill(&p->serve->owner, o, w->skill->dir, w->args, &plan, diags, err) != 0 ||
	    check_place(plan, w->skill, err) != 0 ||
	    (w->consent != NULL && consent_hold(w->consent, plan, err) != 0)) {
		return -1;
	}
	if (w->consent != NULL && w->consent->state != CONSENT_HOLDS) {
		return ssb_fail(err, SSB_E_POLICY, 0, "approval",
		                "the owner's manifest of the skill is not the one that was "
		                "approved; approve it again: skillsandbox approve DIR");
	}
	if (w->consent == NULL && w->shown != NULL &&
	    consent_shown(plan, w->shown, w->copied, BY, err) != 0) {
		return -1;
	}
	narrow(plan, &w->narrow);
	*ret = steal_ptr(&plan);
	return 0;
}

/* ---- keeping it ---------------------------------------------------------------- */

/* The one that was made for this wish, or else the one that was not used longest. */
static struct kept *place_for(struct plans *p, const uint8_t key[SHA256_BYTES])
{
	struct kept *oldest = &p->v[0];

	for (size_t i = 0; i < ARRAY_LEN(p->v); i++) {
		struct kept *k = &p->v[i];
		if (k->plan != NULL && memcmp(k->key, key, SHA256_BYTES) == 0) {
			return k;
		}
		oldest = k->used < oldest->used ? k : oldest;
	}
	return oldest;
}

int plans_get(struct plans *p, const struct plan_wish *w, const struct ssb_plan **ret,
              struct ssb_diags *diags, struct ssb_error *err)
{
	uint8_t key[SHA256_BYTES];
	uint8_t policy[SHA256_BYTES];
	struct ssb_plan *plan = NULL;

	wish_key(w, key);
	policy_key(p->serve, policy); /* before the plan: a change in between is seen next time */
	struct kept *k = place_for(p, key);
	bool same = k->plan != NULL && memcmp(k->key, key, sizeof(key)) == 0;
	if (!same || diags != NULL || !is_fresh(k, w->skill, policy)) {
		uint64_t now = clock_ms();
		if (make(p, w, &plan, diags, err) != 0) {
			return -1;
		}
		forget(k);
		k->plan = plan;
		k->made_ms = now;
		memcpy(k->key, key, sizeof(key));
		memcpy(k->policy, policy, sizeof(policy));
	}
	k->used = ++p->clock;
	*ret = k->plan;
	return 0;
}

bool plan_harmless(const struct ssb_plan *p)
{
	bool writes = false;

	for (size_t i = 0; i < p->n_grants; i++) {
		writes |= p->grants[i].access == ACCESS_WRITE;
	}
	return p->n_egress == 0 && !writes && p->best_effort == 0;
}
