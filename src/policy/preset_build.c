/* preset_build.c - adds presets to a plan: those of --preset, of `always:` in the policy file, and
 * of its entry for this skill. What a preset gives counts as the owner's word, with two exceptions.
 * A dangerous place in `read:` is refused, and a limit cannot exceed the limit of the policy file.
 */
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "policy/build.h"

/* Appends what the plan does not show elsewhere: variables and limits. */
static void describe_preset(struct build *b, const struct preset *p)
{
	auto_buf out = BUF(MAX_SCALAR_BYTES);

	buf_adds(&out, p->name);
	for (size_t i = 0; i < p->env.n; i++) {
		buf_addf(&out, "%s %.*s", i == 0 ? ": sets" : ",", (int)strcspn(p->env.v[i], "="),
		         p->env.v[i]);
	}
	const char *before = p->env.n > 0 ? "; limits" : ": limits";
	for (size_t i = 0; i < RESOURCE_COUNT; i++) {
		uint64_t v = resource_of(&p->limits, &RESOURCES[i]);
		if (v != OPTION_UNSET) {
			buf_addf(&out, "%s %s %llu", before, RESOURCES[i].name,
			         (unsigned long long)v);
			before = ",";
		}
	}
	if (out.data != NULL) {
		build_add(b, &b->plan->presets, out.data, MAX_PRESETS);
	}
}

static int add_preset(struct build *b, const char *name, struct ssb_error *err)
{
	if (ARRAY_HAS(e, b->presets, b->n_presets, strcmp(e->name, name) == 0)) {
		return 0;
	}
	if (b->n_presets == MAX_PRESETS || !ARRAY_MORE(b->presets, b->n_presets)) {
		return ssb_fail(err, SSB_E_LIMIT, 0, options_flag(SSB_OPT_PRESET),
		                "more than %d presets, or no memory", MAX_PRESETS);
	}
	if (preset_load(b->owner, name, &b->presets[b->n_presets], b->diags, err) != 0) {
		return -1;
	}
	describe_preset(b, &b->presets[b->n_presets++]);
	return 0;
}

static int add_listed(struct build *b, enum policy_list list, size_t first, size_t n,
                      struct ssb_error *err)
{
	int failed = 0;

	for (size_t i = first; i < first + n && failed == 0; i++) {
		failed = add_preset(b, b->policy.lists[list].v[i].s, err);
	}
	return failed;
}

/* True if the entry of the policy file is for the skill of this plan. The entry's path is compared
 * as text with the skill's real path, so that no symlink widens it (see resolve_words()). */
static bool is_for_skill(const struct build *b, const struct policy_skill *s)
{
	auto_free char *path = b->skill_dir != NULL ? path_expand(b->owner, s->dir) : NULL;
	auto_free char *words = path != NULL ? resolve_words(b, path) : NULL;

	return words != NULL && strcmp(words, b->skill_dir) == 0;
}

int preset_build(struct build *b, struct ssb_error *err)
{
	size_t n_always = b->policy.lists[POLICY_ALWAYS_PRESET].n;
	int failed = 0;

	b->plan->cache_mb = b->policy.cache_mb;
	for (size_t i = 0; i < b->opt->preset.n && failed == 0; i++) {
		failed = add_preset(b, b->opt->preset.v[i], err);
	}
	failed = failed != 0 ? failed : add_listed(b, POLICY_ALWAYS_PRESET, 0, n_always, err);
	for (size_t i = 0; i < b->policy.n_skills && failed == 0; i++) {
		const struct policy_skill *s = &b->policy.skills[i];
		if (is_for_skill(b, s)) {
			failed = add_listed(b, POLICY_SKILL_PRESET, s->first, s->n, err);
			b->plan->cache_mb = s->cache_mb > 0 ? s->cache_mb : b->plan->cache_mb;
		}
	}
	b->plan->cache_mb = b->opt->cache_mb > 0 ? b->opt->cache_mb : b->plan->cache_mb;
	return failed;
}

void preset_add_paths(struct build *b)
{
	for (size_t i = 0; i < b->n_presets; i++) {
		const struct preset *p = &b->presets[i];
		for (size_t k = 0; k < p->read.n; k++) {
			resolve_request(b, &(struct path_request){ p->read.v[k].s, ACCESS_READ,
			                                           ORIGIN_PRESET, p->where, NULL,
			                                           NULL, false });
		}
	}
}

void preset_raise_limit(const struct build *b, const struct resource *r, uint64_t *v)
{
	for (size_t i = 0; i < b->n_presets; i++) {
		uint64_t limit = resource_of(&b->presets[i].limits, r);
		*v = limit != OPTION_UNSET && limit > *v ? limit : *v;
	}
}
