/* policy_file.c - parses policy.yaml as strictly as the manifest: unknown keys, wrong types and
 * wrong values are errors, and all of them are reported. A table lists the keys of every map. */
#include "policy/policy_file.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/diag.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/number.h"
#include "base/own.h"
#include "base/stamp.h"
#include "manifest/resources.h"
#include "manifest/yaml_doc.h"
#include "policy/preset.h"
#include "policy/upstream.h"

enum policy_value {
	VALUE_MAP,
	VALUE_PATHS,
	VALUE_ENV,
	VALUE_CIDRS,
	VALUE_DOMAINS,
	VALUE_NO_PROXY,
	VALUE_PROXY,
	VALUE_LIMIT,
	VALUE_BOOL,
	VALUE_SOCKETS,
	VALUE_PROFILES,
	VALUE_LAYERS,
	VALUE_TOOLCHAIN,
	VALUE_PROJECT,
	VALUE_ARGUMENTS,
	VALUE_STORE,
	VALUE_UNAPPROVED,
	VALUE_SPAN,
	VALUE_NET,
	VALUE_PRESETS,
	VALUE_CACHE,
	VALUE_SKILLS,
};

struct policy_reader {
	const char *file;
	struct policy *policy;
	struct ssb_diags *diags;
};

struct key {
	const char *in; /* name of the map that contains the key; "" is the top */
	const char *name;
	enum policy_value value;
	/* for a list: enum policy_list; otherwise the offset of the value in struct policy */
	size_t at;
	uint64_t min; /* limits */
	uint64_t max;
};

/* clang-format off */
#define LIMIT(name, unit, after, least, most, usual) \
	{ "limits", #name, VALUE_LIMIT, offsetof(struct policy, limits.name), least, most },
#define NET_LIMIT(name, unit, after, least, most, usual) \
	{ "limits", #name, VALUE_LIMIT, offsetof(struct policy, net.name), least, most },
/* clang-format on */

static const struct key KEYS[] = {
	{ "", "grants", VALUE_MAP, 0, 0, 0 },
	{ "", "always", VALUE_MAP, 0, 0, 0 },
	{ "", "deny", VALUE_MAP, 0, 0, 0 },
	{ "", "limits", VALUE_MAP, 0, 0, 0 },
	{ "", "network", VALUE_MAP, 0, 0, 0 },
	{ "", "profiles", VALUE_PROFILES, 0, 0, 0 },
	{ "", "best_effort", VALUE_LAYERS, 0, 0, 0 },
	{ "", "unix_sockets", VALUE_SOCKETS, 0, 0, 0 },
	{ "", "toolchain", VALUE_TOOLCHAIN, 0, 0, 0 },
	{ "", "store", VALUE_STORE, 0, 0, 0 },
	{ "", "skills", VALUE_SKILLS, 0, 0, 0 },
	{ "", "consent", VALUE_MAP, 0, 0, 0 },
	{ "consent", "unapproved", VALUE_UNAPPROVED, 0, 0, 0 },
	{ "consent", "expires", VALUE_SPAN, offsetof(struct policy, consent.expires), 1,
	  MAX_SESSION_SECONDS },
	{ "grants", "read", VALUE_PATHS, POLICY_GRANT_READ, 0, 0 },
	{ "grants", "write", VALUE_PATHS, POLICY_GRANT_WRITE, 0, 0 },
	{ "grants", "env", VALUE_ENV, POLICY_GRANT_ENV, 0, 0 },
	{ "always", "read", VALUE_PATHS, POLICY_ALWAYS_READ, 0, 0 },
	{ "always", "write", VALUE_PATHS, POLICY_ALWAYS_WRITE, 0, 0 },
	{ "always", "project", VALUE_PROJECT, 0, 0, 0 },
	{ "always", "net", VALUE_NET, POLICY_ALWAYS_NET, 0, 0 },
	{ "always", "preset", VALUE_PRESETS, POLICY_ALWAYS_PRESET, 0, 0 },
	{ "always", "cache", VALUE_CACHE, offsetof(struct policy, cache_mb), 0, 0 },
	{ "skill", "preset", VALUE_PRESETS, POLICY_SKILL_PRESET, 0, 0 },
	{ "skill", "cache", VALUE_CACHE, offsetof(struct policy, skill_cache_mb), 0, 0 },
	{ "deny", "read", VALUE_PATHS, POLICY_DENY_READ, 0, 0 },
	{ "deny", "write", VALUE_PATHS, POLICY_DENY_WRITE, 0, 0 },
	{ "deny", "env", VALUE_ENV, POLICY_DENY_ENV, 0, 0 },
	{ "deny", "arguments", VALUE_ARGUMENTS, 0, 0, 0 },
	{ "network", "allow_literal_addresses", VALUE_BOOL,
	  offsetof(struct policy, literal_addresses), 0, 0 },
	{ "network", "allow_private", VALUE_CIDRS, POLICY_ALLOW_PRIVATE, 0, 0 },
	{ "network", "allow_ech", VALUE_DOMAINS, POLICY_ALLOW_ECH, 0, 0 },
	{ "network", "upstream_proxy", VALUE_PROXY, 0, 0, 0 },
	{ "network", "no_proxy", VALUE_NO_PROXY, POLICY_NO_PROXY, 0, 0 },
	{ "network", "udp_direct", VALUE_BOOL, offsetof(struct policy, udp_direct), 0, 0 },
	RESOURCE_ROWS(LIMIT) NET_LIMIT_ROWS(NET_LIMIT)
};

void policy_init(struct policy *p)
{
	*p = (struct policy){ .profiles = 1U << PROFILE_DEFAULT | 1U << PROFILE_STRICT,
		              .unix_sockets = -1,
		              .toolchain = -1,
		              .project = -1,
		              .deny_arguments = -1 };
	for (size_t i = 0; i < ARRAY_LEN(KEYS); i++) {
		if (KEYS[i].value == VALUE_LIMIT) {
			*(uint64_t *)(void *)((char *)p + KEYS[i].at) = OPTION_UNSET;
		}
	}
}

void policy_done(struct policy *p)
{
	for (size_t i = 0; i < POLICY_LISTS; i++) {
		mtext_list_done(&p->lists[i]);
	}
	for (size_t i = 0; i < p->n_skills; i++) {
		free(p->skills[i].dir);
	}
	free(p->skills);
	free(p->file);
	if (p->store != NULL) {
		explicit_bzero(p->store, strlen(p->store));
		free(p->store);
	}
	upstream_done(&p->upstream);
	*p = (struct policy){ 0 };
}

const char *policy_where(const struct policy *p, const struct mtext *t, char *out, size_t size)
{
	snprintf(out, size, "%s:%u:%u", p->file != NULL ? p->file : "policy", t->line, t->col);
	return out;
}

static void add_complaint(const struct policy_reader *r, unsigned line, unsigned col,
                          const char *remedy, const char *fmt, const char *what)
{
	char where[192];

	snprintf(where, sizeof(where), "%s:%u:%u", r->file, line, col);
	diag_add(r->diags, SSB_ERROR, where, remedy, fmt, what);
}

static void wrong_value(const struct policy_reader *r, const struct ynode *n, const char *remedy)
{
	add_complaint(r, n->line, n->col, remedy, "the value of '%s' is not valid", n->key);
}

static void add_item(const struct policy_reader *r, const struct key *k, const struct ynode *n)
{
	struct mtext_list *l = &r->policy->lists[k->at];
	char *copy = NULL;
	enum host_kind kind = HOST_EXACT;
	const char *wrong = n->kind != YNODE_SCALAR      ? "must be a text"
	                    : l->n >= MAX_LIST_ITEMS     ? "is beyond the limit of 256 items"
	                    : k->value == VALUE_PATHS    ? check_path(n->text, &copy)
	                    : k->value == VALUE_CIDRS    ? options_cidr(n->text, &copy)
	                    : k->value == VALUE_DOMAINS  ? domain_check(n->text, &copy, &kind)
	                    : k->value == VALUE_NO_PROXY ? upstream_no_proxy_item(n->text, &copy)
	                    : k->value == VALUE_NET      ? preset_check_net(n->text, &copy)
	                    : k->value == VALUE_PRESETS  ? preset_name_problem(n->text)
	                                                 : check_env_name(n->text);

	if (wrong == NULL && copy == NULL) {
		copy = strdup(n->text);
	}
	struct mtext *v = wrong == NULL ? realloc(l->v, (l->n + 1) * sizeof(*v)) : NULL;
	if (v == NULL || copy == NULL) {
		l->v = v != NULL ? v : l->v;
		free(copy);
		add_complaint(
		        r, n->line, n->col,
		        k->value == VALUE_PATHS
		                ? "write an absolute path, or one that begins with ~/"
		        : k->value == VALUE_CIDRS    ? "write a range such as 10.0.0.0/8"
		        : k->value == VALUE_DOMAINS  ? "write a domain name, as in an egress rule"
		        : k->value == VALUE_NO_PROXY ? "write a domain, an address, a range or *"
		        : k->value == VALUE_NET ? "write HOST, HOST:PORT or a set such as \"@npm\""
		        : k->value == VALUE_PRESETS ? "write the name of a preset, such as node"
		                                    : "write one variable name",
		        "this item %s", wrong != NULL ? wrong : "cannot be stored: out of memory");
		return;
	}
	l->v = v;
	l->v[l->n++] = (struct mtext){ copy, n->line, n->col };
}

static void read_list(const struct policy_reader *r, const struct key *k, const struct ynode *n)
{
	if (n->kind != YNODE_SEQ) {
		wrong_value(r, n, "write a list: [item, item]");
		return;
	}
	for (const struct ynode *i = n->first; i != NULL; i = i->next) {
		add_item(r, k, i);
	}
	r->policy->no_proxy_given |= k->value == VALUE_NO_PROXY;
}

/* Error messages do not quote the value, which may contain a password. */
static void read_proxy(const struct policy_reader *r, const struct ynode *n)
{
	struct policy *p = r->policy;
	struct upstream u = { 0 };
	bool none = n->kind == YNODE_SCALAR && strcmp(n->text, "none") == 0;
	const char *wrong = n->kind != YNODE_SCALAR ? "is not a text"
	                    : none                  ? NULL
	                                            : upstream_parse(n->text, &u);

	if (wrong != NULL) {
		add_complaint(r, n->line, n->col, "write none, " UPSTREAM_FORM, "upstream_proxy %s",
		              wrong);
		return;
	}
	upstream_done(&p->upstream);
	p->upstream = u;
	p->upstream_given = true;
	p->upstream_at = (struct mtext){ .line = n->line, .col = n->col };
}

static void read_limit(const struct policy_reader *r, const struct key *k, const struct ynode *n)
{
	char remedy[96];
	uint64_t v = 0;

	snprintf(remedy, sizeof(remedy), "write a number from %llu to %llu",
	         (unsigned long long)k->min, (unsigned long long)k->max);
	if (n->kind != YNODE_SCALAR || n->quoted || !number_parse(n->text, k->min, k->max, &v)) {
		wrong_value(r, n, remedy);
		return;
	}
	*(uint64_t *)(void *)((char *)r->policy + k->at) = v;
}

/* Returns 1 for true and 0 for false; -1, after a report, for any other value. */
static int read_truth(const struct policy_reader *r, const struct ynode *n)
{
	bool plain = n->kind == YNODE_SCALAR && !n->quoted;
	bool yes = plain && strcmp(n->text, "true") == 0;

	if (!yes && (!plain || strcmp(n->text, "false") != 0)) {
		wrong_value(r, n, "write true or false");
		return -1;
	}
	return yes;
}

static void read_bool(const struct policy_reader *r, const struct key *k, const struct ynode *n)
{
	int truth = read_truth(r, n);

	if (truth >= 0) {
		*(bool *)(void *)((char *)r->policy + k->at) = truth > 0;
	}
}

static void read_sockets(const struct policy_reader *r, const struct ynode *n)
{
	int truth = read_truth(r, n);

	if (truth >= 0) {
		r->policy->unix_sockets = truth;
	}
}

/* Reads a list of names, and sets *inout to one bit for each name. `from_name` returns the number
 * of the bit, or -1 for an unknown name. */
static void read_names(const struct policy_reader *r, const struct ynode *n,
                       int (*from_name)(const char *s), const char *remedy, unsigned *inout)
{
	unsigned bits = 0;

	if (n->kind != YNODE_SEQ) {
		wrong_value(r, n, remedy);
		return;
	}
	for (const struct ynode *i = n->first; i != NULL; i = i->next) {
		int id = i->kind != YNODE_SCALAR ? -1 : from_name(i->text);
		if (id < 0) {
			add_complaint(r, i->line, i->col, remedy, "'%s' is unknown",
			              i->kind == YNODE_SCALAR ? i->text : "this item");
		} else {
			bits |= 1U << id;
		}
	}
	*inout = bits;
}

static void read_toolchain(const struct policy_reader *r, const struct ynode *n)
{
	/* `off` without quotes is the keyword here, although other YAML readers take it for a
	 * boolean. */
	if (n->kind == YNODE_SCALAR && strcmp(n->text, "auto") == 0) {
		r->policy->toolchain = 1;
	} else if (n->kind == YNODE_SCALAR && strcmp(n->text, "off") == 0) {
		r->policy->toolchain = 0;
	} else {
		wrong_value(r, n, "write auto or off");
	}
}

/* Reads `read` or `write` as an enum access, with its position. */
static void read_access(const struct policy_reader *r, const struct ynode *n, int *ret,
                        struct mtext *ret_at)
{
	const char *text = n->kind == YNODE_SCALAR ? n->text : "";
	bool write = strcmp(text, access_name(ACCESS_WRITE)) == 0;

	if (!write && strcmp(text, access_name(ACCESS_READ)) != 0) {
		wrong_value(r, n, "write read or write");
		return;
	}
	*ret = write ? ACCESS_WRITE : ACCESS_READ;
	*ret_at = (struct mtext){ .line = n->line, .col = n->col };
}

static void read_unapproved(const struct policy_reader *r, const struct ynode *n)
{
	bool refuse = n->kind == YNODE_SCALAR && strcmp(n->text, "refuse") == 0;

	if (!refuse && (n->kind != YNODE_SCALAR || strcmp(n->text, "safe") != 0)) {
		wrong_value(r, n, "write safe or refuse");
		return;
	}
	r->policy->consent.refuse = refuse;
}

static void read_span(const struct policy_reader *r, const struct key *k, const struct ynode *n)
{
	int64_t v = 0;

	if (n->kind != YNODE_SCALAR || !stamp_span_seconds(n->text, &v) || (uint64_t)v < k->min ||
	    (uint64_t)v > k->max) {
		wrong_value(r, n, "write a time span such as 12h, 30d or 4w; a year at most");
		return;
	}
	*(int64_t *)(void *)((char *)r->policy + k->at) = v;
}

static void read_cache(const struct policy_reader *r, const struct key *k, const struct ynode *n)
{
	uint64_t *mb = (uint64_t *)(void *)((char *)r->policy + k->at);

	if (n->kind != YNODE_SCALAR || options_cache(n->text, mb) != NULL) {
		wrong_value(r, n, "write the size of the cache, such as 512M or 4G");
	}
}

static bool store_url_valid(const char *s)
{
	static const char *const SCHEMES[] = { "postgresql://", "postgres://" };
	size_t scheme = 0;

	for (size_t i = 0; i < ARRAY_LEN(SCHEMES) && scheme == 0; i++) {
		size_t n = strlen(SCHEMES[i]);
		scheme = strncmp(s, SCHEMES[i], n) == 0 ? n : 0;
	}
	for (const char *c = s; *c != '\0'; c++) {
		if ((unsigned char)*c <= ' ' || *c == 0x7f) {
			return false;
		}
	}
	return scheme != 0 && s[scheme] != '\0' && strlen(s) <= MAX_STORE_URL;
}

/* Error messages do not quote the value, which may contain a password. */
static void read_store(const struct policy_reader *r, const struct ynode *n)
{
	struct policy *p = r->policy;

	if (n->kind == YNODE_SCALAR && strcmp(n->text, "sqlite") == 0) {
		return; /* SQLite is also used if the key is missing */
	}
	if (n->kind != YNODE_SCALAR || !store_url_valid(n->text)) {
		wrong_value(r, n, "write sqlite, or postgresql://USER@HOST:PORT/DATABASE");
		return;
	}
	p->store = strdup(n->text);
	if (p->store == NULL) {
		add_complaint(r, n->line, n->col, "", "%s", "out of memory");
	}
}

static const struct key *find_key(const char *in, const char *name)
{
	return ARRAY_FIND(e, KEYS, ARRAY_LEN(KEYS),
	                  strcmp(e->in, in) == 0 && strcmp(e->name, name) == 0);
}

static void unknown_key(const struct policy_reader *r, const char *in, const struct ynode *n)
{
	char remedy[240] = "known here:";

	for (size_t i = 0; i < ARRAY_LEN(KEYS); i++) {
		if (strcmp(KEYS[i].in, in) == 0) {
			size_t len = strlen(remedy);
			snprintf(remedy + len, sizeof(remedy) - len, " %s", KEYS[i].name);
		}
	}
	add_complaint(r, n->key_line, n->key_col, remedy, "unknown key '%s'", n->key);
}

static void level_read_map(const struct policy_reader *r, const char *in, const struct ynode *map);
static void read_skills(const struct policy_reader *r, const struct ynode *map);

static void read_value(const struct policy_reader *r, const struct key *k, const struct ynode *n)
{
	if (ynode_is_null(n)) {
		return; /* an empty section changes nothing */
	}
	switch (k->value) {
	case VALUE_MAP:
		if (n->kind != YNODE_MAP) {
			wrong_value(r, n, "write a map: keys and values");
		} else {
			level_read_map(r, k->name, n);
		}
		break;
	case VALUE_PATHS:
	case VALUE_ENV:
	case VALUE_CIDRS:
	case VALUE_DOMAINS:
	case VALUE_NO_PROXY:
	case VALUE_NET:
	case VALUE_PRESETS:
		read_list(r, k, n);
		break;
	case VALUE_PROXY:
		read_proxy(r, n);
		break;
	case VALUE_LIMIT:
		read_limit(r, k, n);
		break;
	case VALUE_BOOL:
		read_bool(r, k, n);
		break;
	case VALUE_SOCKETS:
		read_sockets(r, n);
		break;
	case VALUE_PROFILES:
		read_names(r, n, profile_from_name, "write a list of: default, strict, permissive",
		           &r->policy->profiles);
		break;
	case VALUE_LAYERS:
		read_names(r, n, plan_layer_from_name,
		           "write a list of: userns, net, mounts, env, limits, caps, landlock, "
		           "seccomp, audit",
		           &r->policy->best_effort);
		break;
	case VALUE_TOOLCHAIN:
		read_toolchain(r, n);
		break;
	case VALUE_PROJECT:
		read_access(r, n, &r->policy->project, &r->policy->project_at);
		break;
	case VALUE_ARGUMENTS:
		read_access(r, n, &r->policy->deny_arguments, &r->policy->deny_arguments_at);
		break;
	case VALUE_STORE:
		read_store(r, n);
		break;
	case VALUE_UNAPPROVED:
		read_unapproved(r, n);
		break;
	case VALUE_SPAN:
		read_span(r, k, n);
		break;
	case VALUE_CACHE:
		read_cache(r, k, n);
		break;
	case VALUE_SKILLS:
		read_skills(r, n);
		break;
	}
}

/* Reads the keys of one map. The recursion ends after two steps, because the table has maps only at
 * the top, and in the map of skills. */
static void level_read_map(const struct policy_reader *r, const char *in, const struct ynode *map)
{
	for (const struct ynode *n = map->first; n != NULL; n = n->next) {
		const struct key *k = find_key(in, n->key);
		if (k == NULL) {
			unknown_key(r, in, n);
		} else {
			read_value(r, k, n);
		}
	}
}

/* Reads the settings of skills, each by the path of the skill's directory. */
static void read_skills(const struct policy_reader *r, const struct ynode *map)
{
	struct policy *p = r->policy;

	for (const struct ynode *n = map->first; n != NULL; n = n->next) {
		struct policy_skill s = { .first = p->lists[POLICY_SKILL_PRESET].n };

		if (map->kind != YNODE_MAP || n->kind != YNODE_MAP ||
		    check_path(n->key, &s.dir) != NULL || p->n_skills == MAX_LIST_ITEMS ||
		    !ARRAY_MORE(p->skills, p->n_skills)) {
			free(s.dir);
			add_complaint(r, n->line, n->col,
			              "write at most 256 entries such as ~/skills/weather: "
			              "{preset: [python]}",
			              "%s", "this is not the setting of a skill");
			continue;
		}
		p->skill_cache_mb = 0;
		level_read_map(r, "skill", n);
		s.n = p->lists[POLICY_SKILL_PRESET].n - s.first;
		s.cache_mb = p->skill_cache_mb;
		p->skills[p->n_skills++] = s;
	}
	if (map->kind == YNODE_SCALAR) {
		wrong_value(r, map, "write a map: keys and values");
	}
}

/* Fills `err` with the first error in the file. Always returns -1. */
static int fail_with_first(const struct ssb_diags *diags, size_t from, const char *file,
                           struct ssb_error *err)
{
	for (size_t i = from; i < ssb_diags_count(diags); i++) {
		const struct ssb_diag *d = ssb_diags_get(diags, i);
		if (d->severity == SSB_ERROR) {
			return ssb_fail(err, SSB_E_POLICY, 0, d->where, "%s%s%s", d->text,
			                d->remedy[0] != '\0' ? "; " : "", d->remedy);
		}
	}
	return ssb_fail(err, SSB_E_POLICY, 0, file, "the policy file is not valid");
}

int policy_parse(const char *file, const char *bytes, size_t len, struct policy *ret,
                 struct ssb_diags *diags, struct ssb_error *err)
{
	assert(file != NULL && ret != NULL && diags != NULL);

	size_t from = ssb_diags_count(diags);
	struct policy_reader r = { file, ret, diags };

	if (bytes[strspn(bytes, " \t\r\n")] == '\0' && strlen(bytes) == len) {
		return 0; /* an empty file sets nothing */
	}
	AUTO(ynode_freep) struct ynode *root = yaml_doc_parse(file, bytes, len, diags);
	if (root != NULL && root->kind == YNODE_MAP) {
		level_read_map(&r, "", root);
	} else if (root != NULL && !ynode_is_null(root)) {
		add_complaint(&r, root->line, root->col,
		              "write keys such as grants:, deny: or limits:",
		              "%s must be a map at the top", "the policy");
	}
	return diag_has_errors(diags) ? fail_with_first(diags, from, file, err) : 0;
}
