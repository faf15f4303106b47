/* build.c - functions that the steps of build_plan() share, and the destructor of a plan. */
#include "policy/build.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/diag.h"
#include "base/limits.h"
#include "base/name.h"
#include "base/own.h"
#include "base/shell_quote.h"
#include "policy/upstream.h"

const char *access_name(enum access a)
{
	return a == ACCESS_WRITE ? "write" : "read";
}

static const char *const REQUESTED[REQUESTED_OTHER] = {
	[REQUESTED_NETWORK] = "connect to ", [REQUESTED_READ] = "read ",
	[REQUESTED_WRITE] = "write ",        [REQUESTED_ENV] = "environment ",
	[REQUESTED_PROFILE] = "profile ",    [REQUESTED_PROGRAMS] = "use the programs in ",
	[REQUESTED_LIMIT] = "limit ",        [REQUESTED_ARGUMENTS] = "files named in arguments: ",
};

const char *plan_requested_words(enum requested_kind kind)
{
	assert((unsigned)kind <= REQUESTED_OTHER);
	return kind < REQUESTED_OTHER ? REQUESTED[kind] : "";
}

enum requested_kind plan_requested_kind(const char *item, const char **ret_value)
{
	for (size_t i = 0; i < REQUESTED_OTHER; i++) {
		size_t n = strlen(REQUESTED[i]);
		if (strncmp(item, REQUESTED[i], n) == 0) {
			*ret_value = item + n;
			return (enum requested_kind)i;
		}
	}
	*ret_value = item;
	return REQUESTED_OTHER;
}

static const char *const ORIGINS[] = {
	[ORIGIN_MANIFEST] = "manifest",   [ORIGIN_FLAG] = "flag",   [ORIGIN_POLICY] = "policy",
	[ORIGIN_TOOLCHAIN] = "toolchain", [ORIGIN_SKILL] = "skill", [ORIGIN_CALLER] = "caller",
	[ORIGIN_PRESET] = "preset",       [ORIGIN_CACHE] = "cache", [ORIGIN_OTHER] = "?",
};

const char *grant_origin_name(enum grant_origin o)
{
	return (size_t)o < ARRAY_LEN(ORIGINS) ? ORIGINS[o] : "?";
}

enum grant_origin grant_origin_from(const char *name)
{
	return (enum grant_origin)name_index(name, ORIGINS, ORIGIN_OTHER, sizeof(ORIGINS[0]));
}

char *build_printf(struct build *b, const char *fmt, ...)
{
	char *s = NULL;
	va_list ap;

	va_start(ap, fmt);
	int n = vasprintf(&s, fmt, ap);
	va_end(ap);
	if (n < 0) {
		b->failed = true;
		return NULL;
	}
	return s;
}

char *build_word(struct build *b, const char *path)
{
	size_t home = strncmp(path, "~/", 2) == 0 ? 2 : 0;
	auto_buf out;

	buf_init(&out, 4UL * MAX_PATH_BYTES + 2); /* each byte may be a quote */
	buf_add(&out, path, home);
	if (home == 0 || path[home] != '\0') {
		shell_quote(&out, path + home);
	}
	char *word = buf_steal(&out);
	b->failed |= word == NULL;
	return word;
}

void build_add(struct build *b, struct string_list *l, const char *s, size_t max)
{
	if (string_list_add(l, s, max) < 0) {
		b->failed = true;
	}
}

void refusal_done(struct refusal *r)
{
	free(r->what);
	free(r->where);
	free(r->why);
	free(r->remedy);
	free(r->value);
	*r = (struct refusal){ 0 };
}

static void add_refusal(struct build *b, struct refusal **list, size_t *n, struct refusal r)
{
	struct refusal *v = realloc(*list, (*n + 1) * sizeof(*v));

	if (v != NULL) {
		*list = v;
	}
	if (v == NULL || r.what == NULL || r.where == NULL || r.why == NULL || r.remedy == NULL) {
		b->failed = true;
		refusal_done(&r);
		return;
	}
	v[(*n)++] = r;
}

void build_refuse(struct build *b, enum refusal_kind kind, const char *where, const char *what,
                  const char *why, const char *remedy)
{
	assert(b->diags != NULL && b->plan != NULL);
	diag_add(b->diags, SSB_ERROR, where, remedy, "%s is refused: %s", what, why);
	add_refusal(b, &b->plan->refusals, &b->plan->n_refusals,
	            (struct refusal){ .kind = kind,
	                              .what = strdup(what),
	                              .where = strdup(where),
	                              .why = strdup(why),
	                              .remedy = strdup(remedy) });
}

void build_withhold(struct build *b, const struct refusal *r)
{
	diag_add(b->diags, SSB_WARNING, r->where, r->remedy, "%s is withheld: %s", r->what, r->why);
	add_refusal(b, &b->plan->withheld, &b->plan->n_withheld,
	            (struct refusal){ .kind = r->kind,
	                              .what = strdup(r->what),
	                              .where = strdup(r->where),
	                              .why = strdup(r->why),
	                              .remedy = strdup(r->remedy),
	                              .option = r->option,
	                              .value = r->value != NULL ? strdup(r->value) : NULL,
	                              .named = r->named });
}

void build_offer(struct build *b, enum ssb_option option, const char *value)
{
	assert(b->failed || b->plan->n_refusals > 0);

	struct ssb_plan *p = b->plan;

	if (!b->failed) {
		p->refusals[p->n_refusals - 1].option = option;
		p->refusals[p->n_refusals - 1].value = strdup(value);
		b->failed = p->refusals[p->n_refusals - 1].value == NULL;
	}
}

bool build_gives(const struct build *b, enum ssb_option option, const char *value)
{
	const struct plan_consent *c = &b->request->consent;

	bool found = false;

	for (size_t i = 0; i < ARRAY_LEN(c->given); i++) {
		found |= given_has(c->given[i], c->n_given[i], option, value);
	}
	return found;
}

void build_refuse_request(struct build *b, const struct path_request *r, const char *why,
                          const char *remedy)
{
	auto_free char *what = build_printf(b, "%s%s", build_access_words(r->access), r->text);

	if (what == NULL || why == NULL || remedy == NULL) {
		b->failed = true;
		return;
	}
	build_refuse(b, r->access == ACCESS_WRITE ? REFUSAL_WRITE : REFUSAL_READ, r->where, what,
	             why, remedy);
}

void build_warn(struct build *b, const char *where, const char *fmt, ...)
{
	auto_free char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	int n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0) {
		text = NULL;
		b->failed = true;
		return;
	}
	diag_add(b->diags, SSB_WARNING, where, "", "%s", text);
	build_add(b, &b->plan->warnings, text, 8UL * MAX_GRANTS);
}

void build_alarm(struct build *b, const char *where, const char *text)
{
	diag_add(b->diags, SSB_ALARM, where, "", "%s", text);
	build_add(b, &b->plan->warnings, text, 8UL * MAX_GRANTS);
}

const char *build_where(const struct build *b, const struct mtext *t, char *out, size_t size)
{
	assert(b->manifest != NULL && t != NULL);
	snprintf(out, size, "%s:%u:%u", b->manifest->file, t->line, t->col);
	return out;
}

/* Returns the access for which places must be looked up. Places that are dangerous only to write
 * are not needed for a read. But if a write may still follow, everything is looked up at once. */
static enum access widest_access(const struct build *b)
{
	bool writes = b->manifest == NULL || b->manifest->write.n > 0 || b->opt->write.n > 0 ||
	              b->policy.lists[POLICY_ALWAYS_WRITE].n > 0 || b->request->consent.n_asked > 0;

	return writes ? ACCESS_WRITE : ACCESS_READ;
}

/* Returns the dangerous places of the table, the places that the policy file denies, and the
 * skill's own code. */
struct danger *build_danger(struct build *b, enum access access)
{
	static const struct {
		enum policy_list list;
		unsigned flags;
	} DENIED[] = {
		{ POLICY_DENY_READ, DANGER_READ | DANGER_WRITE },
		{ POLICY_DENY_WRITE, DANGER_WRITE },
	};

	if (b->failed || (b->danger != NULL && danger_judges(b->danger, access))) {
		return b->danger;
	}
	danger_free(steal_ptr(&b->danger));
	struct danger *d = danger_new(b->owner, access == ACCESS_WRITE ? access : widest_access(b));
	int bad = d == NULL;
	for (size_t i = 0; !bad && i < ARRAY_LEN(DENIED); i++) {
		const struct mtext_list *l = &b->policy.lists[DENIED[i].list];
		for (size_t k = 0; !bad && k < l->n; k++) {
			auto_free char *path = path_expand(b->owner, l->v[k].s);
			bad = path == NULL ||
			      danger_add(d, path, "is denied by the policy file",
			                 DENIED[i].flags | DANGER_BENEATH | DANGER_DENIED) < 0;
		}
	}
	if (!bad && b->skill_dir != NULL) {
		bad = danger_add(d, b->skill_dir, "is the skill's own code",
		                 DANGER_WRITE | DANGER_BENEATH) < 0;
	}
	if (bad) {
		danger_free(d);
		b->failed = true;
		return NULL;
	}
	return b->danger = d;
}

void given_free(struct given *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(v[i].value);
		free(v[i].at);
		free(v[i].reason);
	}
	free(v);
}

bool given_has(const struct given *v, size_t n, enum ssb_option option, const char *value)
{
	return ARRAY_HAS(e, v, n, e->option == option && strcmp(e->value, value) == 0);
}

int given_add(struct given **inout, size_t *inout_n, enum ssb_option option, const char *value)
{
	assert(inout != NULL && value != NULL);
	if (given_has(*inout, *inout_n, option, value)) {
		return 0;
	}
	struct given *v =
	        *inout_n < MAX_GRANTS ? reallocarray(*inout, *inout_n + 1, sizeof(*v)) : NULL;
	char *copy = v != NULL ? strdup(value) : NULL;
	*inout = v != NULL ? v : *inout;
	if (copy == NULL) {
		return -1;
	}
	v[(*inout_n)++] = (struct given){ .option = option, .value = copy };
	return 0;
}

char *given_item(enum ssb_option option, const char *value)
{
	enum requested_kind kind = option == SSB_OPT_READ    ? REQUESTED_READ
	                           : option == SSB_OPT_WRITE ? REQUESTED_WRITE
	                           : option == SSB_OPT_NET   ? REQUESTED_NETWORK
	                           : option == SSB_OPT_ENV   ? REQUESTED_ENV
	                                                     : REQUESTED_PROFILE;
	char *item = NULL;

	return asprintf(&item, "%s%s", plan_requested_words(kind), value) < 0 ? NULL : item;
}

void plan_approval_free(struct plan_approval *a)
{
	if (a != NULL) {
		free(a->by);
		free(a->at);
		free(a->tree);
	}
	free(a);
}

struct ssb_plan *build_new_plan(void)
{
	struct ssb_plan *p = calloc(1, sizeof(*p));

	if (p != NULL) {
		p->rootfs.fd = p->rootfs.parent_fd = -1;
	}
	return p;
}

void build_forget_answers(struct ssb_plan *p)
{
	for (size_t i = 0; i < p->n_grants; i++) {
		grants_release(&p->grants[i]);
	}
	for (size_t i = 0; i < p->n_refusals; i++) {
		refusal_done(&p->refusals[i]);
	}
	string_list_done(&p->warnings);
	string_list_done(&p->origins);
	string_list_done(&p->presets);
	string_list_done(&p->env_preset);
	p->n_grants = 0;
	p->n_refusals = 0;
}

void ssb_plan_free(struct ssb_plan *p)
{
	if (p == NULL) {
		return;
	}
	build_forget_answers(p);
	for (size_t i = 0; i < p->n_egress; i++) {
		free(p->egress[i].domain.s);
		free(p->egress[i].ports);
	}
	grants_release(&p->rootfs);
	string_list_done(&p->rootfs_places);
	for (size_t i = 0; i < p->n_covers; i++) {
		free(p->covers[i].path);
		free(p->covers[i].target);
	}
	free(p->covers);
	free(p->grants);
	free(p->refusals);
	free(p->egress);
	string_list_done(&p->requested);
	string_list_done(&p->named);
	string_list_done(&p->naming);
	string_list_done(&p->env);
	string_list_done(&p->env_missing);
	string_list_done(&p->argv);
	string_list_done(&p->stores);
	string_list_done(&p->allow_private);
	string_list_done(&p->no_proxy);
	for (int i = 0; i < UPSTREAM_USES; i++) {
		upstream_done(&p->upstream[i]);
	}
	for (size_t i = 0; i < p->n_withheld; i++) {
		refusal_done(&p->withheld[i]);
	}
	free(p->withheld);
	plan_approval_free(p->approved);
	free(p->skill_dir);
	free(p->scripts);
	free(p->name);
	free(p->version);
	free(p->manifest);
	free(p->workdir);
	free(p->home);
	free(p->trace_output);
	free(p);
}

size_t ssb_plan_refusals(const struct ssb_plan *p)
{
	return p->n_refusals;
}
