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
#include "policy/path.h"
#include "policy/policy_file.h"

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

/* What the owner said of this skill: an approval that holds, or an answer about these files; and
 * what was given beside it. Where there is a copy an errand found it whole, or made it: to look at
 * each of its files again is not for the loop. */
static int listen_to(const struct serve *s, const struct plan_wish *w, struct consent_word *ret,
                     struct ssb_error *err)
{
	struct skill_files shown = { 0 };
	int failed = 0;

	if (w->consent != NULL) {
		failed = consent_by_approval(&s->owner, w->consent, w->copied, ret, err);
	} else if (w->shown != NULL) {
		failed = !digest_parse(w->shown, shown.tree)
		                 ? ssb_fail(err, SSB_E_POLICY, 0, "approval", "no files were shown")
		                 : consent_once(&s->owner, w->skill->dir, &shown, w->copied, BY,
		                                ret, err);
	}
	for (size_t i = 0; i < w->n_extra && failed == 0; i++) {
		if (w->extra[i].option != AS_IT_IS &&
		    consent_word_give(ret, w->extra[i].option, w->extra[i].value) != 0) {
			failed = ssb_fail(err, SSB_E_NOMEM, 0, "approval", "out of memory");
		}
	}
	return failed;
}

/* The directory was found to be served; it may have become a link to another since. */
static int check_place(const struct ssb_plan *p, const struct skill *skill, struct ssb_error *err)
{
	return strcmp(p->skill_dir, skill->dir) == 0
	               ? 0
	               : ssb_fail(err, SSB_E_POLICY, 0, "skill",
	                          "'%.200s' was moved while it was looked at", skill->name);
}

static void freep_plan(struct ssb_plan **p)
{
	ssb_plan_free(*p);
}

static int make(struct plans *p, const struct plan_wish *w, struct ssb_plan **ret,
                struct ssb_diags *diags, struct ssb_error *err)
{
	AUTO(consent_word_done) struct consent_word word = { 0 };
	AUTO(freep_plan) struct ssb_plan *plan = NULL;
	const struct serve *s = p->serve;

	if (listen_to(s, w, &word, err) != 0) {
		return -1;
	}
	struct plan_consent consent = consent_word_plan(&word);
	if (w->consent == NULL) {
		consent.declined[0] = w->without;
	}
	const struct plan_request q = { .owner = &s->owner,
		                        .options = s->opt->owner,
		                        .skill = w->skill->dir,
		                        .args = w->args,
		                        .consent = consent,
		                        .narrow = w->narrow,
		                        .served = true };
	if (plan_decide(&q, &plan, diags, err) != 0 || check_place(plan, w->skill, err) != 0) {
		return -1;
	}
	if (w->consent != NULL && !consent_fits(&w->consent->lock, plan)) {
		return ssb_fail(err, SSB_E_POLICY, 0, "approval",
		                "the owner's manifest of the skill is not the one that was "
		                "approved; approve it again: skillsandbox approve DIR");
	}
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

bool plans_harmless(const struct ssb_plan *p)
{
	bool writes = false;

	for (size_t i = 0; i < p->n_grants; i++) {
		writes |= p->grants[i].access == ACCESS_WRITE;
	}
	return p->n_egress == 0 && !writes && p->best_effort == 0;
}
