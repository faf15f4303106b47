/* plans.c - keeps plans, because making a plan costs about as much as the start of a sandbox, and
 * clients call the same skill again and again.
 *
 * A kept plan is used as long as the bytes of the manifest and of the policy file are the same,
 * each granted path still names the object that was judged, and the plan is younger than FRESH_MS:
 * some changes cannot be noticed cheaply (a symlink on the way to a grant, a new mount). In any
 * case the sandbox mounts the object that was judged and no other. */
#include "serve/plans.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <linux/openat2.h>

#include "base/array.h"
#include "base/diag.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/sha256.h"
#include "os/clock.h"
#include "os/file.h"
#include "policy/path.h"
#include "policy/policy_file.h"
#include "skill/skill.h"

#define FRESH_MS 2000

struct kept_plan {
	uint8_t key[SHA256_BYTES];    /* digest of struct plan_wish */
	uint8_t policy[SHA256_BYTES]; /* digest of the policy file */
	struct ssb_plan *plan;        /* NULL: this place is free */
	uint64_t made_ms;
	uint64_t used; /* value of p->clock when the plan was last used */
};

struct plans {
	struct serve *serve;
	struct kept_plan v[MAX_PLANS];
	uint64_t clock;
};

/* Checks the policy file when the server starts. With a broken file, every plan would be refused,
 * so the server must not start. */
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

static void forget_plan(struct kept_plan *k)
{
	ssb_plan_free(k->plan);
	*k = (struct kept_plan){ 0 };
}

void plans_free(struct plans *p)
{
	for (size_t i = 0; p != NULL && i < ARRAY_LEN(p->v); i++) {
		forget_plan(&p->v[i]);
	}
	free(p);
}

/* ---- what it was made from --------------------------------------------------- */

static void mix_text(struct sha256 *h, const char *s)
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

static void mix_given(struct sha256 *h, const struct given *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		sha256_update(h, &v[i].option, sizeof(v[i].option));
		mix_text(h, v[i].value);
	}
}

static void mix_list(struct sha256 *h, const struct string_list *list)
{
	for (size_t i = 0; list != NULL && i < list->n; i++) {
		mix_text(h, list->v[i]);
	}
}

static size_t length_of(const struct string_list *list)
{
	return list != NULL ? list->n : 0;
}

static const char *or_empty(const char *text)
{
	return text != NULL ? text : "";
}

static struct plan_consent consent_of(const struct plan_wish *w)
{
	return w->input != NULL ? consent_input_plan(w->input) : (struct plan_consent){ 0 };
}

/* Adds the approved items and the time of a stored approval, because an earlier approval of the
 * same files would have the same digests. Does not add the time of an answer for one run or a
 * session, which is only the time of use. */
static void mix_consent(struct sha256 *h, const struct plan_wish *w)
{
	const struct plan_consent c = consent_of(w);
	const bool holds = w->input != NULL && w->input->holds;

	for (size_t i = 0; i < ARRAY_LEN(c.given); i++) {
		mix_given(h, c.given[i], c.n_given[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(c.declined); i++) {
		mix_list(h, c.declined[i]);
	}
	mix_given(h, c.asked, c.n_asked);
	mix_text(h, or_empty(c.source));
	mix_text(h, or_empty(c.approval.by));
	mix_text(h, or_empty(c.approval.tree));
	mix_text(h, holds ? or_empty(c.approval.at) : "");
}

/* The lengths of all lists come first, so that an argument, which the client chooses, cannot be
 * mistaken for an item that the owner was shown or declined. */
static void make_key(const struct plan_wish *w, uint8_t ret[SHA256_BYTES])
{
	const struct plan_consent c = consent_of(w);
	const size_t n_args = count_args(w);
	const uint64_t numbers[] = { w->narrow.offline,
		                     w->narrow.read_only,
		                     w->asks,
		                     w->look == NULL,
		                     length_of(w->look),
		                     w->narrow.max_seconds,
		                     n_args,
		                     c.n_given[0],
		                     c.n_given[1],
		                     c.n_given[2],
		                     c.n_asked,
		                     length_of(c.declined[0]),
		                     length_of(c.declined[1]),
		                     c.approval.by != NULL,
		                     c.approval.counted };
	struct sha256 h;

	sha256_init(&h);
	mix_text(&h, w->skill->dir);
	sha256_update(&h, numbers, sizeof(numbers));
	for (size_t i = 0; i < n_args; i++) {
		mix_text(&h, w->args[i]);
	}
	mix_list(&h, w->look);
	mix_consent(&h, w);
	sha256_final(&h, ret);
}

/* SHA-256 of the file; all zero if it cannot be read, which matches no kept plan. */
static void file_key(int fd, uint8_t ret[SHA256_BYTES])
{
	auto_buf bytes = BUF(MAX_YAML_BYTES);
	struct stat st;

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

/* Returns true if the manifest file has the digest that is in the plan. Returns false for a skill
 * of another format: it has no such file, its manifest is derived from several files, and it is
 * planned again each time. The same is true if there is no entrypoint: the command then depends on
 * the first line of the script. */
static bool has_same_manifest(const struct skill *skill, const struct ssb_plan *plan)
{
	uint8_t now[SHA256_BYTES];

	if (plan->by_script) {
		return false;
	}
	auto_fd dir = file_open_nosymlink(skill->dir, O_PATH | O_DIRECTORY);
	auto_fd fd = dir < 0 ? -1
	                     : file_openat2(dir, MANIFEST_FILE, O_RDONLY | O_NONBLOCK | O_NOCTTY,
	                                    RESOLVE_BENEATH);

	file_key(fd, now);
	return memcmp(now, plan->manifest_digest, sizeof(now)) == 0;
}

static bool has_same_grants(const struct ssb_plan *plan)
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

static bool is_fresh(const struct kept_plan *k, const struct skill *skill,
                     const uint8_t policy[SHA256_BYTES])
{
	/* Whether a word of the arguments names a file can change at any time. */
	return k->plan->naming.n == 0 && clock_ms() - k->made_ms < FRESH_MS &&
	       memcmp(k->policy, policy, SHA256_BYTES) == 0 && has_same_manifest(skill, k->plan) &&
	       has_same_grants(k->plan);
}

/* ---- making one --------------------------------------------------------------- */

/* Opens the skill's directory. Follows no symlink: one may have replaced the directory after
 * skills_find() checked it. */
static int open_place(const struct skill *skill, struct skill_dir *ret, struct ssb_error *err)
{
	auto_fd fd = file_open_nosymlink(skill->dir, O_PATH | O_DIRECTORY);
	auto_free char *path = strdup(skill->dir);

	if (fd < 0) {
		return ssb_fail(err, SSB_E_POLICY, errno, "skill",
		                "'%.200s' was moved while the server examined it", skill->name);
	}
	if (path == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "skill", "out of memory");
	}
	*ret = (struct skill_dir){ skill->dir, steal_ptr(&path), steal_fd(&fd) };
	return 0;
}

static int make_plan(struct plans *p, const struct plan_wish *w, struct ssb_plan **ret,
                     struct ssb_diags *diags, struct ssb_error *err)
{
	AUTO(plan_freep) struct ssb_plan *plan = NULL;
	AUTO(skill_dir_close) struct skill_dir dir = SKILL_DIR_NONE;
	const struct serve *s = p->serve;

	if (open_place(w->skill, &dir, err) != 0) {
		return -1;
	}
	const struct plan_request q = { .owner = &s->owner,
		                        .options = s->opt->owner,
		                        .dir = &dir,
		                        .args = w->args,
		                        .consent = consent_of(w),
		                        .narrow = w->narrow,
		                        .served = true,
		                        .asks = w->asks,
		                        .look = w->look };

	if (plan_decide(&q, &plan, diags, err) != 0) {
		return -1;
	}
	*ret = steal_ptr(&plan);
	return 0;
}

/* ---- keeping it ---------------------------------------------------------------- */

/* Returns the place that has the plan of this wish, or else the place that was not used for the
 * longest time. */
static struct kept_plan *find_place(struct plans *p, const uint8_t key[SHA256_BYTES])
{
	struct kept_plan *oldest = &p->v[0];

	for (size_t i = 0; i < ARRAY_LEN(p->v); i++) {
		struct kept_plan *k = &p->v[i];
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

	assert(w->skill != NULL);
	make_key(w, key);
	policy_key(p->serve,
	           policy); /* read before planning, so that a later change is noticed next time */
	struct kept_plan *k = find_place(p, key);
	bool same = k->plan != NULL && memcmp(k->key, key, sizeof(key)) == 0;
	if (!same || diags != NULL || !is_fresh(k, w->skill, policy)) {
		uint64_t now = clock_ms();
		if (make_plan(p, w, &plan, diags, err) != 0) {
			return -1;
		}
		forget_plan(k);
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
	return p->n_egress == 0 && p->best_effort == 0 &&
	       !ARRAY_HAS(grant, p->grants, p->n_grants, grant->access == ACCESS_WRITE);
}
