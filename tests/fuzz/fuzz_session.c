/* Parses a session policy of arbitrary bytes: the parser must end without a crash, and an accepted
 * policy must be as other code expects it. Each line is also read as an amount and as a time. */
#include <string.h>
#include <strings.h>

#include "fuzz.h"
#include "base/diag.h"
#include "base/limits.h"
#include "session/policy.h"

static void check_limit(const struct session_limit *l)
{
	must(l->act < SESSION_ACTS);
	must(l->max == SESSION_NO_LIMIT || l->max <= MAX_NET_BYTES_CAP);
}

/* Other code relies on these properties without checking them again. */
static void check_promises(const struct session_policy *p)
{
	must(p->max_cost_per_session >= 0 && p->max_cost_per_session <= MAX_MICROS);
	must(p->max_cost_per_action >= 0 && p->max_cost_per_action <= MAX_MICROS);
	must(p->alert_at_ppm <= 1000000 && p->on_exceed < SESSION_ACTS);
	must(p->reservation_ms >= 1000 && p->reservation_ms <= MAX_SESSION_SECONDS * 1000);
	must(p->max_duration_ms <= MAX_SESSION_SECONDS * 1000);
	must(p->max_actions <= MAX_SESSION_COUNT && p->grace_ms <= MAX_GRACE_SECONDS * 1000);
	must(p->version[0] != '\0' && p->agent_id[0] != '\0');
	for (size_t i = 0; i < SESSION_METERS; i++) {
		check_limit(&p->limits[i]);
	}
	check_limit(&p->all_violations);
	must(p->n_thresholds <= MAX_LIST_ITEMS && p->n_notify <= MAX_NOTIFY);
	must(p->n_exports <= MAX_EXPORTS);
	for (size_t i = 0; i < p->n_thresholds; i++) {
		const struct session_threshold *t = &p->thresholds[i];
		must(t->count >= 1 && t->count <= MAX_SESSION_COUNT + 1);
		must(t->act < SESSION_ACTS && t->name[0] != '\0');
		must(session_policy_threshold(p, t->name) == t);
	}
	for (size_t i = 0; i < p->n_notify; i++) {
		const struct session_notify *n = &p->notify[i];
		must(strncasecmp(n->url, "http", 4) == 0 && strlen(n->url) < MAX_NOTIFY_URL);
		must(n->kind != NOTIFY_SLACK || n->secret == NULL);
		must(n->kind != NOTIFY_JSON || n->secret == NULL || n->secret[0] == '/');
		must(n->kind != NOTIFY_PAGERDUTY || n->secret[0] != '\0');
	}
	for (size_t i = 0; i < p->n_exports; i++) {
		must(p->exports[i].to[0] != '\0');
		must(p->exports[i].kind != EXPORT_FILE || strstr(p->exports[i].to, "/../") == NULL);
		must(strncmp(p->exports[i].to, "../", 3) != 0);
	}
}

static void check_words(const char *bytes, size_t len)
{
	char word[128];
	micros m = -1;
	uint64_t ms = UINT64_MAX;
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		if (bytes[i] != '\n' && n + 1 < sizeof(word)) {
			word[n++] = bytes[i];
			continue;
		}
		word[n] = '\0';
		must(!money_parse(word, &m, NULL) || (m >= 0 && m <= MAX_MICROS));
		must(!session_duration_parse(word, &ms) || ms <= MAX_SESSION_SECONDS * 1000);
		n = 0;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ssb_diags *diags = ssb_diags_new();
	struct ssb_error err = { 0 };
	struct session_policy p;

	if (session_policy_parse("fuzz.yaml", (const char *)data, size, &p, diags, &err) == 0) {
		must(err.code == SSB_OK && !diag_has_errors(diags));
		must(p.source_len == size && (size == 0 || memcmp(p.source, data, size) == 0));
		check_promises(&p);
	} else {
		must(err.code == SSB_E_POLICY && diag_has_errors(diags));
		must(err.where[0] != '\0' && err.text[0] != '\0');
	}
	session_policy_done(&p);
	ssb_diags_free(diags);
	check_words((const char *)data, size);
	return 0;
}
