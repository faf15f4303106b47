/* explain.c - the plan as text for people: what is requested, what is granted, what is denied and
 * why, and what would allow it. It never shows values of variables. */
#include "policy/explain.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/visible.h"
#include "manifest/resources.h"
#include "policy/options.h"
#include "policy/preset.h"

const char *explain_rule_where(const struct ssb_plan *p, const struct egress_rule *r, char *out,
                               size_t size)
{
	const char *slash = p->manifest != NULL ? strrchr(p->manifest, '/') : NULL;

	if (r->from != NULL) {
		snprintf(out, size, "%s", r->from);
	} else if (r->domain.line == 0 || slash == NULL) {
		snprintf(out, size, "%s", options_flag(SSB_OPT_NET));
	} else {
		snprintf(out, size, "%.60s:%u:%u", slash + 1, r->domain.line, r->domain.col);
	}
	return out;
}

enum explain_use explain_proxy_use(const struct ssb_plan *p, int use)
{
	const struct upstream *u = p->upstream;

	if (u[use].host == NULL) {
		return USE_NONE;
	}
	bool same = u[0].host != NULL && u[1].host != NULL && strcmp(u[0].where, u[1].where) == 0;
	return same ? (use == 0 ? USE_ALL : USE_NONE) : use == UPSTREAM_HTTP ? USE_HTTP : USE_OTHER;
}

const char *explain_proxy_url(const struct upstream *u, char *out, size_t size)
{
	bool v6 = strchr(u->host, ':') != NULL;

	snprintf(out, size, "http://%s%s%s:%u", v6 ? "[" : "", u->host, v6 ? "]" : "",
	         (unsigned)u->port);
	return out;
}

/* Appends a text in which only printable characters are left: names come from manifests and file
 * systems. */
static void put_visible(struct buf *out, const char *s)
{
	visible_text(out, s, false);
}

/* Puts the label on the first line of a group, and blanks on its other lines. */
static void put_label(struct buf *out, const char *text, bool first)
{
	buf_addf(out, "%-10s", first ? text : "");
}

static void text_command(struct buf *out, const struct ssb_plan *p)
{
	put_label(out, "skill", true);
	put_visible(out, p->name);
	if (p->version[0] != '\0') {
		buf_addc(out, ' ');
		put_visible(out, p->version);
	}
	buf_addc(out, '\n');
	if (p->skill_dir != NULL && p->format != SKILL_DECLARED) {
		put_label(out, "format", true);
		buf_addf(out, "%s  (", skill_format_name(p->format));
		put_visible(out, p->manifest);
		buf_adds(out, skill_format_derived(p->format) ? ", read leniently)\n" : ")\n");
	}
	put_label(out, "runs", true);
	if (plan_lacks_script(p)) {
		buf_adds(out, "the script that the caller names: ");
		put_visible(out, p->scripts);
	}
	for (size_t i = 0; i < p->argv.n; i++) {
		if (i > 0) {
			buf_addc(out, ' ');
		}
		put_visible(out, p->argv.v[i]);
	}
	buf_adds(out, "\n          in ");
	put_visible(out, p->workdir);
	buf_adds(out, ", home ");
	put_visible(out, p->home);
	buf_addc(out, '\n');
}

static void text_approved(struct buf *out, const struct ssb_plan *p)
{
	if (p->approved != NULL) {
		put_label(out, "approved", true);
		buf_addf(out, "%.19sZ by ", p->approved->at);
		put_visible(out, p->approved->by);
		buf_addf(out, ", %.19s...\n", p->approved->tree);
	}
}

static void text_files(struct buf *out, const struct ssb_plan *p)
{
	if (p->rootfs.path != NULL) {
		put_label(out, "root", true);
		put_visible(out, p->rootfs.path);
		buf_adds(out, " instead of the host's system directories\n");
	}
	for (size_t i = 0; i < p->n_grants; i++) {
		const struct grant *g = &p->grants[i];
		put_label(out, "files", i == 0);
		buf_addf(out, "%-6s", access_name(g->access));
		put_visible(out, g->target);
		if (strcmp(g->target, g->path) != 0) {
			buf_adds(out, " = ");
			put_visible(out, g->path);
		}
		buf_addf(out, "%s  (", g->create ? ", to be created" : "");
		put_visible(out, g->where);
		buf_adds(out, ")\n");
	}
	if (p->n_grants == 0) {
		buf_adds(out, "files     no files of the host, except its system directories\n");
	}
}

static void text_covered(struct buf *out, const struct ssb_plan *p)
{
	for (size_t i = 0; i < p->n_covers; i++) {
		put_label(out, "covered", i == 0);
		put_visible(out, p->covers[i].target);
		buf_adds(out, ", which the skill sees as empty: it belongs to the runtime  (");
		put_visible(out, p->covers[i].where);
		buf_adds(out, ")\n");
	}
}

static void text_env(struct buf *out, const struct ssb_plan *p)
{
	put_label(out, "env", true);
	for (size_t i = 0; i < p->env.n; i++) {
		buf_addf(out, "%s%.*s", i > 0 ? ", " : "", (int)strcspn(p->env.v[i], "="),
		         p->env.v[i]);
	}
	buf_addf(out, "  (%zu withheld)\n", p->env_withheld);
	for (size_t i = 0; i < p->env_missing.n; i++) {
		put_label(out, "", false);
		put_visible(out, p->env_missing.v[i]);
		buf_adds(out, " is declared, but not set\n");
	}
}

static void text_network_limits(struct buf *out, const struct ssb_plan *p)
{
	put_label(out, "", false);
	buf_adds(out, "at most ");
	for (size_t i = 0; i < NET_LIMIT_COUNT; i++) {
		const struct resource *r = &NET_LIMITS[i];
		buf_adds(out, i > 0 ? ", " : "");
		resource_amount(out, r->unit, resource_of(&p->net, r));
		buf_adds(out, r->after);
	}
	buf_addc(out, '\n');
	for (size_t i = 0; i < p->allow_private.n; i++) {
		put_label(out, "", false);
		buf_addf(out, "granted host names may have addresses in %s, as you allowed\n",
		         p->allow_private.v[i]);
	}
}

static void text_proxy(struct buf *out, const struct ssb_plan *p)
{
	static const char *const WHAT[] = { [USE_HTTP] = "plain http",
		                            [USE_OTHER] = "everything except plain http",
		                            [USE_ALL] = "everything" };
	char url[320];

	for (int i = 0; i < UPSTREAM_USES; i++) {
		const struct upstream *u = &p->upstream[i];
		enum explain_use use = explain_proxy_use(p, i);
		if (use != USE_NONE) {
			put_label(out, "", false);
			buf_addf(out, "%s goes through the proxy ", WHAT[use]);
			put_visible(out, explain_proxy_url(u, url, sizeof(url)));
			buf_adds(out, u->credentials != NULL ? ", with credentials  (" : "  (");
			put_visible(out, u->where);
			buf_adds(out, ")\n");
		}
	}
	for (size_t i = 0; i < p->no_proxy.n; i++) {
		put_label(out, "", false);
		buf_adds(out, "past the proxy: ");
		put_visible(out, p->no_proxy.v[i]);
		buf_addc(out, '\n');
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
		put_label(out, "network", i == 0);
		buf_addf(out, "%s ", protocol_name(r->protocol));
		put_visible(out, r->domain.s);
		buf_addc(out, ':');
		for (size_t k = 0; k < r->n_ports; k++) {
			buf_addf(out, "%s%u", k > 0 ? "," : "", (unsigned)r->ports[k]);
		}
		buf_addf(out, "  (%s)\n", explain_rule_where(p, r, where, sizeof(where)));
	}
	text_network_limits(out, p);
	text_proxy(out, p);
}

static void text_settings(struct buf *out, const struct ssb_plan *p)
{
	for (size_t i = 0; i < RESOURCE_COUNT; i++) {
		put_label(out, "limits", i == 0);
		const struct resource *r = &RESOURCES[i];
		uint64_t v = resource_of(&p->res, r);
		if (v == RESOURCE_UNLIMITED) {
			buf_addf(out, "%-20s none: %s\n", r->name,
			         r->unit == UNIT_SECONDS ? "the command runs in your terminal"
			                                 : "it is a command, not a skill");
		} else {
			buf_addf(out, "%-20s ", r->name);
			resource_amount(out, r->unit, v);
			buf_addf(out, "%s\n", r->after);
		}
	}
	buf_addf(out, "profile   %s; unix sockets %s\n", profile_name(p->profile),
	         p->unix_sockets  ? "allowed"
	         : p->own_sockets ? "only its own"
	                          : "off");
	buf_addf(out, "audit     %s\n", audit_level_name(p->audit));
	bool first = true;
	for (int i = 0; i < LAYER_COUNT; i++) {
		if ((p->best_effort & 1U << i) != 0) {
			put_label(out, "optional", first);
			buf_addf(out, "%s\n", plan_layer_name((enum layer_id)i));
			first = false;
		}
	}
}

static void text_presets(struct buf *out, const struct ssb_plan *p)
{
	for (size_t i = 0; i < p->presets.n; i++) {
		put_label(out, "presets", i == 0);
		put_visible(out, p->presets.v[i]);
		buf_addc(out, '\n');
	}
	if (p->cache_mb > 0) {
		put_label(out, "cache", true);
		put_visible(out, p->home);
		buf_addf(out, "/" CACHE_PLACE ", kept for the next run; at most %llu MiB\n",
		         (unsigned long long)p->cache_mb);
	}
}

static void text_refusals(struct buf *out, const char *head, const struct refusal *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct refusal *r = &v[i];
		put_label(out, head, i == 0);
		put_visible(out, r->what);
		buf_adds(out, ": ");
		put_visible(out, r->why);
		buf_adds(out, "  (");
		put_visible(out, r->where);
		buf_adds(out, r->remedy[0] != '\0' ? ")\n          " : ")");
		put_visible(out, r->remedy);
		buf_addc(out, '\n');
	}
}

static void text_denied(struct buf *out, const struct ssb_plan *p)
{
	text_refusals(out, "DENIED", p->refusals, p->n_refusals);
	text_refusals(out, "withheld", p->withheld, p->n_withheld);
	for (size_t i = 0; i < p->warnings.n; i++) {
		put_label(out, "warnings", i == 0);
		put_visible(out, p->warnings.v[i]);
		buf_addc(out, '\n');
	}
}

char *ssb_plan_text(const struct ssb_plan *p)
{
	auto_buf out = BUF(MAX_EXPLANATION);

	text_command(&out, p);
	text_approved(&out, p);
	text_files(&out, p);
	text_covered(&out, p);
	text_env(&out, p);
	text_network(&out, p);
	text_settings(&out, p);
	text_presets(&out, p);
	text_denied(&out, p);
	return buf_steal(&out);
}
