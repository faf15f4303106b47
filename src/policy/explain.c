/* explain.c - the plan for programs (JSON) and for people (text): what is
 * asked, what is granted, what is denied, why, and what would allow it.
 * Values of variables are never shown. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"
#include "base/utf8.h"
#include "policy/options.h"
#include "policy/plan.h"

#define MAX_EXPLANATION (1UL << 24)

static const struct {
	const char *name;
	const char *unit;
	size_t at;
} LIMITS[] = {
	{ "memory_mb", " MiB", offsetof(struct resources, memory_mb) },
	{ "cpu_shares", "", offsetof(struct resources, cpu_shares) },
	{ "max_runtime_seconds", " s", offsetof(struct resources, max_runtime_seconds) },
	{ "max_output_bytes", " bytes", offsetof(struct resources, max_output_bytes) },
	{ "max_processes", "", offsetof(struct resources, max_processes) },
	{ "max_open_files", "", offsetof(struct resources, max_open_files) },
	{ "max_disk_mb", " MiB", offsetof(struct resources, max_disk_mb) },
};

static const struct {
	const char *name;
	const char *what; /* for people, after the number */
	size_t at;
} NET_LIMITS[] = {
	{ "max_connections", "connections", offsetof(struct net_limits, max_connections) },
	{ "max_connections_per_second", "new connections a second",
	  offsetof(struct net_limits, max_connections_per_second) },
	{ "max_bytes_out", "bytes out", offsetof(struct net_limits, max_bytes_out) },
	{ "max_bytes_in", "bytes in", offsetof(struct net_limits, max_bytes_in) },
};

static uint64_t net_limit_of(const struct ssb_plan *p, size_t i)
{
	return *(const uint64_t *)(const void *)((const char *)&p->net + NET_LIMITS[i].at);
}

static uint64_t limit_of(const struct ssb_plan *p, size_t i)
{
	return *(const uint64_t *)(const void *)((const char *)&p->res + LIMITS[i].at);
}

/* Where a rule comes from: the manifest's line, or the owner's flag. */
static const char *rule_where(const struct ssb_plan *p, const struct egress_rule *r, char *out,
                              size_t size)
{
	if (r->domain.line == 0 || p->manifest == NULL) {
		snprintf(out, size, "%s", option_flag(SSB_OPT_NET));
	} else {
		snprintf(out, size, MANIFEST_FILE ":%u:%u", r->domain.line, r->domain.col);
	}
	return out;
}

/* ---- JSON ------------------------------------------------------------------ */

static void json_list(struct json *j, const char *key, const struct string_list *l)
{
	json_key(j, key);
	json_open(j, '[');
	for (size_t i = 0; i < l->n; i++) {
		json_str(j, l->v[i]);
	}
	json_close(j, ']');
}

static void json_files(struct json *j, const struct ssb_plan *p)
{
	json_key(j, "files");
	json_open(j, '[');
	for (size_t i = 0; i < p->n_grants; i++) {
		const struct grant *g = &p->grants[i];
		json_open(j, '{');
		json_kstr(j, "path", g->path);
		json_kstr(j, "target", g->target);
		json_kstr(j, "access", access_name(g->access));
		json_kstr(j, "origin", origin_name(g->origin));
		json_kstr(j, "where", g->where);
		json_kbool(j, "create", g->create);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void json_env(struct json *j, const struct ssb_plan *p)
{
	json_key(j, "env");
	json_open(j, '[');
	for (size_t i = 0; i < p->env.n; i++) {
		json_strn(j, p->env.v[i], strcspn(p->env.v[i], "="));
	}
	json_close(j, ']');
}

static void json_network(struct json *j, const struct ssb_plan *p)
{
	char where[96];

	json_key(j, "network");
	json_open(j, '[');
	for (size_t i = 0; i < p->n_egress; i++) {
		const struct egress_rule *r = &p->egress[i];
		json_open(j, '{');
		json_kstr(j, "domain", r->domain.s);
		json_key(j, "ports");
		json_open(j, '[');
		for (size_t k = 0; k < r->n_ports; k++) {
			json_uint(j, r->ports[k]);
		}
		json_close(j, ']');
		json_kstr(j, "protocol", protocol_name(r->protocol));
		json_kstr(j, "where", rule_where(p, r, where, sizeof(where)));
		json_close(j, '}');
	}
	json_close(j, ']');
	json_key(j, "network_limits");
	json_open(j, '{');
	for (size_t i = 0; i < ARRAY_LEN(NET_LIMITS); i++) {
		json_kuint(j, NET_LIMITS[i].name, net_limit_of(p, i));
	}
	json_close(j, '}');
	json_list(j, "allow_private", &p->allow_private);
}

static void json_denied(struct json *j, const struct ssb_plan *p)
{
	json_key(j, "denied");
	json_open(j, '[');
	for (size_t i = 0; i < p->n_refusals; i++) {
		const struct refusal *r = &p->refusals[i];
		json_open(j, '{');
		json_kstr(j, "what", r->what);
		json_kstr(j, "where", r->where);
		json_kstr(j, "why", r->why);
		json_kstr(j, "remedy", r->remedy);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void json_settings(struct json *j, const struct ssb_plan *p)
{
	json_key(j, "limits");
	json_open(j, '{');
	for (size_t i = 0; i < ARRAY_LEN(LIMITS); i++) {
		json_kuint(j, LIMITS[i].name, limit_of(p, i));
	}
	json_close(j, '}');
	json_kstr(j, "profile", profile_name(p->profile));
	json_kbool(j, "unix_sockets", p->unix_sockets);
	json_list(j, "argv", &p->argv);
	json_kstr(j, "workdir", p->workdir);
	json_kstr(j, "home", p->home);
	json_kbool(j, "toolchain_auto", p->toolchain_auto);
	json_key(j, "best_effort");
	json_open(j, '[');
	for (int i = 0; i < LAYER_COUNT; i++) {
		if ((p->best_effort & 1U << i) != 0) {
			json_str(j, layer_name((enum layer_id)i));
		}
	}
	json_close(j, ']');
}

char *ssb_plan_json(const struct ssb_plan *p)
{
	auto_buf out;
	struct json j;

	buf_init(&out, MAX_EXPLANATION);
	json_init(&j, &out, true);
	json_open(&j, '{');
	json_kstr(&j, "name", p->name);
	json_kstr(&j, "version", p->version);
	json_kstr(&j, "manifest", p->manifest);
	json_list(&j, "requested", &p->requested);
	json_key(&j, "granted");
	json_open(&j, '{');
	json_files(&j, p);
	json_env(&j, p);
	json_network(&j, p);
	json_close(&j, '}');
	json_denied(&j, p);
	json_list(&j, "warnings", &p->warnings);
	json_list(&j, "env_missing", &p->env_missing);
	json_kuint(&j, "env_withheld", p->env_withheld);
	json_settings(&j, p);
	json_close(&j, '}');
	buf_addc(&out, '\n');
	return buf_steal(&out);
}

/* ---- text ------------------------------------------------------------------ */

/* Characters that would move the cursor, recolour or reorder a terminal. */
static bool unprintable(uint32_t cp)
{
	return cp < 0x20 || (cp >= 0x7f && cp < 0xa0) || (cp >= 0x200e && cp <= 0x200f) ||
	       (cp >= 0x2028 && cp <= 0x202e) || (cp >= 0x2066 && cp <= 0x2069);
}

/* Names come from manifests and file systems: only what prints is printed. */
static void put(struct buf *out, const char *s)
{
	size_t len = strlen(s);

	while (len > 0) {
		uint32_t cp = 0;
		size_t n = utf8_decode(s, len, &cp);
		size_t step = n > 0 ? n : 1;
		if (n > 0 && !unprintable(cp)) {
			buf_add(out, s, n);
		} else {
			for (size_t i = 0; i < step; i++) {
				buf_addf(out, "\\x%02x", (unsigned char)s[i]);
			}
		}
		s += step;
		len -= step;
	}
}

/* "label     " on the first line of a group, blank below. */
static void label(struct buf *out, const char *text, bool first)
{
	buf_addf(out, "%-10s", first ? text : "");
}

static void text_command(struct buf *out, const struct ssb_plan *p)
{
	label(out, "skill", true);
	put(out, p->name);
	if (p->version[0] != '\0') {
		buf_addc(out, ' ');
		put(out, p->version);
	}
	buf_addc(out, '\n');
	label(out, "runs", true);
	for (size_t i = 0; i < p->argv.n; i++) {
		if (i > 0) {
			buf_addc(out, ' ');
		}
		put(out, p->argv.v[i]);
	}
	buf_adds(out, "\n          in ");
	put(out, p->workdir);
	buf_adds(out, ", home ");
	put(out, p->home);
	buf_addc(out, '\n');
}

static void text_files(struct buf *out, const struct ssb_plan *p)
{
	for (size_t i = 0; i < p->n_grants; i++) {
		const struct grant *g = &p->grants[i];
		label(out, "files", i == 0);
		buf_addf(out, "%-6s", access_name(g->access));
		put(out, g->target);
		if (strcmp(g->target, g->path) != 0) {
			buf_adds(out, " = ");
			put(out, g->path);
		}
		buf_addf(out, "%s  (", g->create ? ", to be created" : "");
		put(out, g->where);
		buf_adds(out, ")\n");
	}
	if (p->n_grants == 0) {
		buf_adds(out, "files     none of the host's beyond the system directories\n");
	}
}

static void text_env(struct buf *out, const struct ssb_plan *p)
{
	label(out, "env", true);
	for (size_t i = 0; i < p->env.n; i++) {
		buf_addf(out, "%s%.*s", i > 0 ? ", " : "", (int)strcspn(p->env.v[i], "="),
		         p->env.v[i]);
	}
	buf_addf(out, "  (%zu withheld)\n", p->env_withheld);
	for (size_t i = 0; i < p->env_missing.n; i++) {
		label(out, "", false);
		put(out, p->env_missing.v[i]);
		buf_adds(out, " is declared, but not set\n");
	}
}

static void text_network_limits(struct buf *out, const struct ssb_plan *p)
{
	label(out, "", false);
	buf_adds(out, "at most ");
	for (size_t i = 0; i < ARRAY_LEN(NET_LIMITS); i++) {
		buf_addf(out, "%s%llu %s", i > 0 ? ", " : "",
		         (unsigned long long)net_limit_of(p, i), NET_LIMITS[i].what);
	}
	buf_addc(out, '\n');
	for (size_t i = 0; i < p->allow_private.n; i++) {
		label(out, "", false);
		buf_addf(out, "may lead into %s, by the owner's word\n", p->allow_private.v[i]);
	}
}

static void text_network(struct buf *out, const struct ssb_plan *p)
{
	char where[96];

	if (p->n_egress == 0) {
		buf_adds(out, "network   none\n");
		return;
	}
	for (size_t i = 0; i < p->n_egress; i++) {
		const struct egress_rule *r = &p->egress[i];
		label(out, "network", i == 0);
		buf_addf(out, "%s ", protocol_name(r->protocol));
		put(out, r->domain.s);
		buf_addc(out, ':');
		for (size_t k = 0; k < r->n_ports; k++) {
			buf_addf(out, "%s%u", k > 0 ? "," : "", (unsigned)r->ports[k]);
		}
		buf_addf(out, "  (%s)\n", rule_where(p, r, where, sizeof(where)));
	}
	text_network_limits(out, p);
}

static void text_settings(struct buf *out, const struct ssb_plan *p)
{
	for (size_t i = 0; i < ARRAY_LEN(LIMITS); i++) {
		label(out, "limits", i == 0);
		buf_addf(out, "%-20s %llu%s\n", LIMITS[i].name, (unsigned long long)limit_of(p, i),
		         LIMITS[i].unit);
	}
	buf_addf(out, "profile   %s; unix sockets %s\n", profile_name(p->profile),
	         p->unix_sockets ? "allowed" : "off");
	bool first = true;
	for (int i = 0; i < LAYER_COUNT; i++) {
		if ((p->best_effort & 1U << i) != 0) {
			label(out, "optional", first);
			buf_addf(out, "%s\n", layer_name((enum layer_id)i));
			first = false;
		}
	}
}

static void text_denied(struct buf *out, const struct ssb_plan *p)
{
	for (size_t i = 0; i < p->n_refusals; i++) {
		const struct refusal *r = &p->refusals[i];
		label(out, "DENIED", i == 0);
		put(out, r->what);
		buf_adds(out, ": ");
		put(out, r->why);
		buf_adds(out, "  (");
		put(out, r->where);
		buf_adds(out, ")\n          ");
		put(out, r->remedy);
		buf_addc(out, '\n');
	}
	for (size_t i = 0; i < p->warnings.n; i++) {
		label(out, "warnings", i == 0);
		put(out, p->warnings.v[i]);
		buf_addc(out, '\n');
	}
}

char *ssb_plan_text(const struct ssb_plan *p)
{
	auto_buf out;

	buf_init(&out, MAX_EXPLANATION);
	text_command(&out, p);
	text_files(&out, p);
	text_env(&out, p);
	text_network(&out, p);
	text_settings(&out, p);
	text_denied(&out, p);
	return buf_steal(&out);
}
