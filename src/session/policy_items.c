/* policy_items.c - the lists of a session.yaml whose items have several forms: receivers of
 * messages, and exports of the ledger. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "otel/otel_config.h"
#include "base/address.h"
#include "base/array.h"
#include "base/limits.h"
#include "base/own.h"
#include "manifest/manifest.h"
#include "session/policy_priv.h"

#define PAGERDUTY_URL "https://events.pagerduty.com/v2/enqueue"

enum format { FORMAT_SLACK, FORMAT_JSON };
static const char *const FORMATS[] = { "slack", "json" };

/* An item while it is read. The members that the file does not have are NULL or -1. */
struct item {
	char *webhook;
	char *pagerduty;
	char *url;
	char *secret_file;
	char *file;
	char *otel;
	int format; /* -1: missing */
	bool allow_http;
};

static void item_done(struct item *i)
{
	free(i->webhook);
	free(i->pagerduty);
	free(i->url);
	free(i->secret_file);
	free(i->file);
	free(i->otel);
}

/* ---- values -------------------------------------------------------------- */

/* Reads a URL. Findings do not repeat it, because the paths of webhooks contain tokens. */
static void read_url(struct ctx *c, const struct ynode *n, const struct field *f, void *at)
{
	struct otlp_target t = { 0 };
	char *s = policy_read_secret(c, n, f);

	if (s != NULL && otlp_target_parse(&t, s, "", f->key, NULL) < 0) {
		report_add(c->rep, SSB_ERROR, n->line, n->col,
		           "write https://HOST/PATH, without a user name and without \"#\"",
		           "%s is not a URL that can be used", f->key);
		free(s);
		return;
	}
	*(char **)at = s;
}

static void read_key(struct ctx *c, const struct ynode *n, const struct field *f, void *at)
{
	char *s = policy_read_secret(c, n, f);

	for (const char *p = s; p != NULL && *p != '\0'; p++) {
		if (*p <= ' ' || *p > '~') {
			report_add(c->rep, SSB_ERROR, n->line, n->col,
			           "write the key as PagerDuty shows it", "%s is not a routing key",
			           f->key);
			free(s);
			return;
		}
	}
	*(char **)at = s;
}

static void read_format(struct ctx *c, const struct ynode *n, const struct field *f, void *at)
{
	int i = values_node_choice(c, n, f, FORMATS, ARRAY_LEN(FORMATS));

	if (i >= 0) {
		*(int *)at = i;
	}
}

/* Refuses a relative path: the directory and the home of the process that opens the file are not
 * known. */
static const char *check_absolute(const char *s, char **ret)
{
	return s[0] == '~' ? "begins with \"~\"; write the absolute path" : check_path(s, ret);
}

/* Accepts a relative path, too, because the known schema allows it. The path is then below
 * <state_dir>/exports. */
static const char *check_export(const char *s, char **ret)
{
	auto_free char *rooted = NULL;
	char *path = NULL;

	if (s[0] == '/' || s[0] == '~' || s[0] == '$' || s[0] == '\0') {
		return check_absolute(s, ret);
	}
	if (asprintf(&rooted, "/%s", s) < 0) {
		rooted = NULL;
		return "cannot be checked: out of memory";
	}
	const char *problem = check_path(rooted, &path);
	if (problem == NULL && strcmp(path, "/") == 0) {
		problem = "names no file; write a path";
		free(path);
	} else if (problem == NULL) {
		memmove(path, path + 1, strlen(path));
		*ret = path;
	}
	return problem;
}

/* ---- one item ------------------------------------------------------------ */

#define AT(member) .offset = offsetof(struct item, member)

static const struct field NOTIFY_FIELDS[] = {
	{ "webhook", read_url, AT(webhook), .max = MAX_NOTIFY_URL },
	{ "pagerduty", read_key, AT(pagerduty), .max = MAX_ROUTING_KEY },
	{ "format", read_format, AT(format) },
	{ "secret_file", values_read_text, AT(secret_file), .check = check_absolute },
	{ "url", read_url, AT(url), .max = MAX_NOTIFY_URL },
	{ "allow_http", policy_read_flag, AT(allow_http) },
};
const struct level NOTIFY_LEVEL = LEVEL("an item of kill_switch.notify", NOTIFY_FIELDS);

static const struct field EXPORT_FIELDS[] = {
	{ "file", values_read_text, AT(file), .check = check_export },
	{ "otel", read_url, AT(otel), .max = MAX_OTEL_URL },
	{ "allow_http", policy_read_flag, AT(allow_http) },
};
const struct level EXPORT_LEVEL = LEVEL("an item of audit.export", EXPORT_FIELDS);

static bool has_key(const struct ynode *n, const char *key)
{
	return ynode_get((struct ynode *)n, key) != NULL;
}

static bool is_loopback(const char *host)
{
	static const char *const RANGES[] = { "127.0.0.0/8", "::1" };
	struct address a;
	struct cidr range;

	if (!address_parse(host, &a)) {
		return strcasecmp(host, "localhost") == 0;
	}
	return ARRAY_HAS(e, RANGES, ARRAY_LEN(RANGES),
	                 cidr_parse(*e, &range) && cidr_contains(&range, &a));
}

/* Refuses a URL without TLS, because any machine on the way could read and forge the messages. */
static bool url_is_safe(struct ctx *c, const struct ynode *item, const char *key, const char *url,
                        bool allow_http)
{
	const struct ynode *n = ynode_get((struct ynode *)item, key);
	struct otlp_target t = { 0 };

	if (url == NULL || n == NULL || otlp_target_parse(&t, url, "", key, NULL) < 0 || t.tls ||
	    allow_http || is_loopback(t.host)) {
		return true;
	}
	report_add(c->rep, SSB_ERROR, n->line, n->col,
	           "write https://, or add \"allow_http: true\" to the item",
	           "%s goes to another machine without TLS", key);
	return false;
}

static bool refuse_item(struct ctx *c, const struct ynode *n, const char *remedy, const char *what)
{
	report_add(c->rep, SSB_ERROR, n->line, n->col, remedy, "%s", what);
	return false;
}

static bool notify_is_whole(struct ctx *c, const struct ynode *n, const struct item *i)
{
	bool webhook = has_key(n, "webhook");

	if (webhook == has_key(n, "pagerduty")) {
		return refuse_item(
		        c, n, "write \"- webhook: https://...\" or \"- pagerduty: KEY\"",
		        webhook ? "an item of notify is both a webhook and pagerduty"
		                : "an item of notify is neither a webhook nor pagerduty");
	}
	if (!webhook && (has_key(n, "format") || has_key(n, "secret_file"))) {
		return refuse_item(c, n, "remove them",
		                   "format and secret_file are only for webhooks");
	}
	if (webhook && has_key(n, "url")) {
		return refuse_item(c, n, "write the URL after \"webhook:\"",
		                   "url is only for pagerduty");
	}
	if (has_key(n, "secret_file") && i->format != FORMAT_JSON) {
		return refuse_item(c, n, "add \"format: json\"",
		                   "secret_file signs only messages in the format json");
	}
	return url_is_safe(c, n, webhook ? "webhook" : "url", webhook ? i->webhook : i->url,
	                   i->allow_http);
}

static bool is_item(struct ctx *c, const struct ynode *n, const struct field *f)
{
	if (n->kind != YNODE_MAP && !n->bad) {
		values_report_type(c, n, f, "a list of mappings", "write \"- key: value\"");
	}
	return n->kind == YNODE_MAP && !n->bad;
}

static void add_notify(struct ctx *c, const struct ynode *n, struct session_policy *p)
{
	AUTO(item_done) struct item i = { .format = -1 };

	level_read(c, n, &NOTIFY_LEVEL, &i);
	if (!notify_is_whole(c, n, &i) || (i.webhook == NULL && i.pagerduty == NULL)) {
		return; /* reported */
	}
	struct session_notify *to = &p->notify[p->n_notify++];
	if (i.webhook != NULL) {
		to->kind = i.format == FORMAT_JSON ? NOTIFY_JSON : NOTIFY_SLACK;
		to->url = steal_ptr(&i.webhook);
		to->secret = steal_ptr(&i.secret_file);
		return;
	}
	to->kind = NOTIFY_PAGERDUTY;
	to->url = i.url != NULL ? steal_ptr(&i.url) : strdup(PAGERDUTY_URL);
	to->secret = steal_ptr(&i.pagerduty);
	c->nomem = c->nomem || to->url == NULL;
}

static void add_export(struct ctx *c, const struct ynode *n, struct session_policy *p)
{
	AUTO(item_done) struct item i = { .format = -1 };

	level_read(c, n, &EXPORT_LEVEL, &i);
	if (has_key(n, "file") == has_key(n, "otel")) {
		(void)refuse_item(c, n, "write \"- file: PATH\" or \"- otel: https://...\"",
		                  "an item of export needs exactly one of file and otel");
		return;
	}
	if (!url_is_safe(c, n, "otel", i.otel, i.allow_http) ||
	    (i.file == NULL && i.otel == NULL)) {
		return; /* reported */
	}
	struct session_export *to = &p->exports[p->n_exports++];
	if (i.file != NULL) {
		to->kind = EXPORT_FILE;
		to->to = steal_ptr(&i.file);
	} else {
		to->kind = EXPORT_OTEL;
		to->to = steal_ptr(&i.otel);
	}
}

/* ---- the lists ----------------------------------------------------------- */

/* Checks the length of the list, and allocates room for all items in `*ret`. */
static bool list_of(struct ctx *c, const struct ynode *n, const struct field *f, size_t most,
                    size_t item_size, void *ret)
{
	size_t count = 0;

	if (!values_node_is_list(c, n, f)) {
		return false;
	}
	for (const struct ynode *i = n->first; i != NULL; i = i->next) {
		if (++count > most) {
			report_add(c->rep, SSB_ERROR, i->line, i->col, "shorten the list",
			           "%s has more than %zu items", f->key, most);
			return false;
		}
	}
	return values_list_alloc(c, n, item_size, ret);
}

void policy_read_notify(struct ctx *c, const struct ynode *n, const struct field *f, void *at)
{
	struct session_policy *p = &((struct policy_draft *)at)->p;

	if (!list_of(c, n, f, MAX_NOTIFY, sizeof(p->notify[0]), &p->notify)) {
		return;
	}
	for (const struct ynode *i = n->first; i != NULL; i = i->next) {
		if (is_item(c, i, f)) {
			add_notify(c, i, p);
		}
	}
}

void policy_read_exports(struct ctx *c, const struct ynode *n, const struct field *f, void *at)
{
	struct session_policy *p = &((struct policy_draft *)at)->p;

	if (!list_of(c, n, f, MAX_EXPORTS, sizeof(p->exports[0]), &p->exports)) {
		return;
	}
	for (const struct ynode *i = n->first; i != NULL; i = i->next) {
		if (is_item(c, i, f)) {
			add_export(c, i, p);
		}
	}
}
