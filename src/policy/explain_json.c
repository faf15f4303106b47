/* explain_json.c - the plan as JSON for programs, with the same facts as the text. It never shows
 * values of variables. */
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "manifest/resources.h"
#include "policy/explain.h"

static void json_files(struct json *j, const struct ssb_plan *p)
{
	json_kopen(j, "files", '[');
	for (size_t i = 0; i < p->n_grants; i++) {
		const struct grant *g = &p->grants[i];
		json_open(j, '{');
		json_kstr(j, "path", g->path);
		json_kstr(j, "target", g->target);
		json_kstr(j, "access", access_name(g->access));
		json_kstr(j, "origin", grant_origin_name(g->origin));
		json_kstr(j, "where", g->where);
		json_kbool(j, "create", g->create);
		json_close(j, '}');
	}
	json_close(j, ']');
}

/* Says where the sandbox's system directories come from; adds nothing if they are the host's. */
static void json_rootfs(struct json *j, const struct ssb_plan *p)
{
	if (p->rootfs.path != NULL) {
		json_kstr(j, "rootfs", p->rootfs.path);
	}
}

static void json_covered(struct json *j, const struct ssb_plan *p)
{
	json_kopen(j, "covered", '[');
	for (size_t i = 0; i < p->n_covers; i++) {
		json_open(j, '{');
		json_kstr(j, "path", p->covers[i].path);
		json_kstr(j, "target", p->covers[i].target);
		json_kstr(j, "where", p->covers[i].where);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void json_env(struct json *j, const struct ssb_plan *p)
{
	json_kopen(j, "env", '[');
	for (size_t i = 0; i < p->env.n; i++) {
		json_strn(j, p->env.v[i], strcspn(p->env.v[i], "="));
	}
	json_close(j, ']');
}

static void json_proxy(struct json *j, const struct ssb_plan *p)
{
	static const char *const FOR[] = {
		[USE_HTTP] = "http", [USE_OTHER] = "other", [USE_ALL] = "all"
	};
	char url[320];

	if (!plan_proxied(p)) {
		return;
	}
	json_kopen(j, "upstream_proxy", '[');
	for (int i = 0; i < UPSTREAM_USES; i++) {
		const struct upstream *u = &p->upstream[i];
		enum explain_use use = explain_proxy_use(p, i);
		if (use != USE_NONE) {
			json_open(j, '{');
			json_kstr(j, "for", FOR[use]);
			json_kstr(j, "url", explain_proxy_url(u, url, sizeof(url)));
			json_kbool(j, "credentials", u->credentials != NULL);
			json_kstr(j, "where", u->where);
			json_close(j, '}');
		}
	}
	json_close(j, ']');
	json_kstrs(j, "no_proxy", p->no_proxy.v, p->no_proxy.n);
	json_kbool(j, "udp_direct", p->udp_direct);
}

static void json_network(struct json *j, const struct ssb_plan *p)
{
	char where[96];

	json_kopen(j, "network", '[');
	for (size_t i = 0; i < p->n_egress; i++) {
		const struct egress_rule *r = &p->egress[i];
		json_open(j, '{');
		json_kstr(j, "domain", r->domain.s);
		json_kopen(j, "ports", '[');
		for (size_t k = 0; k < r->n_ports; k++) {
			json_uint(j, r->ports[k]);
		}
		json_close(j, ']');
		json_kstr(j, "protocol", protocol_name(r->protocol));
		json_kstr(j, "where", explain_rule_where(p, r, where, sizeof(where)));
		json_close(j, '}');
	}
	json_close(j, ']');
	json_kopen(j, "network_limits", '{');
	for (size_t i = 0; i < NET_LIMIT_COUNT; i++) {
		json_kuint(j, NET_LIMITS[i].name, resource_of(&p->net, &NET_LIMITS[i]));
	}
	json_close(j, '}');
	json_kstrs(j, "allow_private", p->allow_private.v, p->allow_private.n);
	if (p->learning != LEARNING_NOT) {
		json_kstr(j, "learning", p->learning == LEARNING_CONNECT ? "connect" : "closed");
	}
	json_proxy(j, p);
}

static void json_refusals(struct json *j, const char *key, const struct refusal *v, size_t n)
{
	json_kopen(j, key, '[');
	for (size_t i = 0; i < n; i++) {
		const struct refusal *r = &v[i];
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
	json_kopen(j, "limits", '{');
	for (size_t i = 0; i < RESOURCE_COUNT; i++) {
		uint64_t v = resource_of(&p->res, &RESOURCES[i]);
		json_key(j, RESOURCES[i].name);
		if (v == RESOURCE_UNLIMITED) {
			json_null(j);
		} else {
			json_uint(j, v);
		}
	}
	json_close(j, '}');
	json_kstrs(j, "presets", p->presets.v, p->presets.n);
	json_kstrs(j, "env_preset", p->env_preset.v, p->env_preset.n);
	json_kuint(j, "cache_mb", p->cache_mb);
	json_kstr(j, "profile", profile_name(p->profile));
	json_kbool(j, "unix_sockets", p->unix_sockets);
	json_kstr(j, "audit", audit_level_name(p->audit));
	json_kstrs(j, "argv", p->argv.v, p->argv.n);
	json_kstr(j, "workdir", p->workdir);
	json_kstr(j, "home", p->home);
	json_kbool(j, "toolchain_auto", p->toolchain_auto);
	json_kopen(j, "best_effort", '[');
	for (int i = 0; i < LAYER_COUNT; i++) {
		if ((p->best_effort & 1U << i) != 0) {
			json_str(j, plan_layer_name((enum layer_id)i));
		}
	}
	json_close(j, ']');
}

static void json_approved(struct json *j, const struct ssb_plan *p)
{
	const struct plan_approval *a = p->approved;

	if (a != NULL) {
		json_kopen(j, "approved", '{');
		json_kstr(j, "by", a->by);
		json_kstr(j, "at", a->at);
		json_kstr(j, "tree", a->tree);
		json_kbool(j, "snapshot", a->snapshot);
		json_close(j, '}');
	}
	if (p->consent_state != NULL) {
		json_kopen(j, "consent", '{');
		json_kstr(j, "state", p->consent_state);
		json_kbool(j, "refuse_unapproved", p->consent.refuse);
		json_kbool(j, "counted", a != NULL && a->counted);
		json_close(j, '}');
	}
}

static void json_texts(struct json *j, const struct string_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		json_str(j, l->v[i]);
	}
}

static void json_warnings(struct json *j, const struct ssb_plan *p, const struct prepared *of_run)
{
	json_kopen(j, "warnings", '[');
	json_texts(j, &p->warnings);
	if (of_run != NULL) {
		json_texts(j, &of_run->warnings);
		json_texts(j, &of_run->quiet);
	}
	json_close(j, ']');
}

char *plan_json(const struct ssb_plan *p, const struct prepared *of_run, bool pretty)
{
	auto_buf out = BUF(MAX_EXPLANATION);
	struct json j = JSON_TO(&out, pretty);

	json_open(&j, '{');
	json_kstr(&j, "name", p->name);
	json_kstr(&j, "version", p->version);
	json_kstr(&j, "manifest", p->manifest);
	json_kstr(&j, "skill_dir", p->skill_dir);
	json_kstr(&j, "format", p->skill_dir != NULL ? skill_format_name(p->format) : NULL);
	json_kstrs(&j, "requested", p->requested.v, p->requested.n);
	json_kopen(&j, "granted", '{');
	json_files(&j, p);
	json_env(&j, p);
	json_network(&j, p);
	json_close(&j, '}');
	json_rootfs(&j, p);
	json_covered(&j, p);
	json_refusals(&j, "denied", p->refusals, p->n_refusals);
	json_refusals(&j, "withheld", p->withheld, p->n_withheld);
	json_warnings(&j, p, of_run);
	json_kstrs(&j, "env_missing", p->env_missing.v, p->env_missing.n);
	json_kuint(&j, "env_withheld", p->env_withheld);
	json_settings(&j, p);
	json_approved(&j, p);
	json_close(&j, '}');
	if (pretty) {
		buf_addc(&out, '\n');
	}
	return buf_steal(&out);
}

char *ssb_plan_json(const struct ssb_plan *p)
{
	return plan_json(p, NULL, true);
}
