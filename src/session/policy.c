/* policy.c - loads session.yaml: defaults, memory, the file, durations. policy_fields.c has the
 * tables of the keys. */
#include "session/policy.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/diag.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "manifest/report.h"
#include "manifest/yaml_doc.h"
#include "os/file.h"
#include "policy/owner.h"
#include "session/money.h"
#include "session/policy_priv.h"

#define SECOND_MS 1000ULL

/* ---- defaults ------------------------------------------------------------ */

static const struct session_policy DEFAULTS = {
	.version = "1.0",
	.agent_id = "default",
	.max_cost_per_session = 5 * MICROS_PER_DOLLAR,
	.max_cost_per_action = MICROS_PER_DOLLAR / 2,
	.alert_at_ppm = 800000,
	.on_exceed = ACT_KILL,
	.reservation_ms = 600 * SECOND_MS,
	.charge_on_timeout = true,
	.max_duration_ms = 1800 * SECOND_MS,
	.max_actions = 100,
	.all_violations = { SESSION_NO_LIMIT, ACT_KILL },
	.kill_enabled = true,
	.grace_ms = 5 * SECOND_MS,
	.on_store_loss = ACT_KILL,
	.audit_enabled = true,
};

static bool take_source(struct session_policy *p, const char *bytes, size_t len)
{
	*p = DEFAULTS;
	for (size_t i = 0; i < SESSION_METERS; i++) {
		p->limits[i] = (struct session_limit){ SESSION_NO_LIMIT, ACT_KILL };
	}
	p->source = malloc(len + 1);
	if (p->source == NULL) {
		return false;
	}
	if (len > 0) {
		memcpy(p->source, bytes, len);
	}
	p->source[len] = '\0';
	p->source_len = len;
	return true;
}

int session_policy_init(struct session_policy *p, struct ssb_error *err)
{
	return take_source(p, "", 0) ? 0
	                             : ssb_fail(err, SSB_E_NOMEM, 0, "session", "out of memory");
}

/* Wipes the text, because it may contain routing keys or tokens of webhooks. */
static void wipe_free(char *s)
{
	if (s != NULL) {
		explicit_bzero(s, strlen(s));
	}
	free(s);
}

void session_policy_done(struct session_policy *p)
{
	for (size_t i = 0; i < p->n_notify; i++) {
		wipe_free(p->notify[i].url);
		wipe_free(p->notify[i].secret);
	}
	for (size_t i = 0; i < p->n_exports; i++) {
		free(p->exports[i].to);
	}
	if (p->source != NULL) {
		explicit_bzero(p->source, p->source_len);
	}
	free(p->source);
	free(p->notify);
	free(p->exports);
	free(p->thresholds);
	*p = (struct session_policy){ 0 };
}

/* ---- reading ------------------------------------------------------------- */

int session_policy_parse(const char *file, const char *bytes, size_t len,
                         struct session_policy *ret, struct ssb_diags *diags, struct ssb_error *err)
{
	assert(diags != NULL);
	/* `found` is separate from `diags`, which may already contain findings of another file. */
	AUTO(diags_freep) struct ssb_diags *found = ssb_diags_new();
	struct report rep = { file, found };
	struct policy_draft d = { .on_threshold = ACT_KILL };
	size_t kept =
	        len <= (size_t)MAX_YAML_BYTES ? len : 0; /* yaml_doc_parse() rejects longer files */
	bool whole = take_source(&d.p, bytes, kept) && found != NULL;

	AUTO(ynode_freep)
	struct ynode *root = whole ? yaml_doc_parse(file, bytes, len, found) : NULL;
	if (root != NULL) {
		whole = policy_fields_read(&rep, root, &d);
	}
	*ret = d.p;
	if (!whole) {
		return ssb_fail(err, SSB_E_NOMEM, 0, file, "out of memory");
	}
	return report_deliver(found, SSB_E_POLICY, file, diags, err) ? 0 : -1;
}

static int load_bytes(const char *path, struct buf *out, struct ssb_error *err)
{
	const struct owner us = { .uid = geteuid() };
	/* O_NONBLOCK: a FIFO must cause an error and must not block. */
	auto_fd fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

	if (fd < 0 && errno == ELOOP) {
		return ssb_fail(err, SSB_E_POLICY, 0, path,
		                "the session policy is a symlink; name the file itself");
	}
	if (fd < 0) {
		enum ssb_code code =
		        errno == ENOENT || errno == ENOTDIR ? SSB_E_NOT_FOUND : SSB_E_POLICY;
		return ssb_fail(err, code, errno, path, "open the session policy");
	}
	if (owner_file_check(&us, fd, "session policy", path, err) != 0) {
		return -1;
	}
	if (file_read_all(fd, out) < 0) {
		return ssb_fail(err, SSB_E_POLICY, errno, path, "read the session policy");
	}
	return 0;
}

int session_policy_load(const char *path, struct session_policy *ret, struct ssb_diags *diags,
                        struct ssb_error *err)
{
	auto_buf text = BUF(MAX_YAML_BYTES);
	int failed = 0;

	*ret = (struct session_policy){ 0 };
	if (path == NULL) {
		return session_policy_init(ret, err);
	}
	failed = load_bytes(path, &text, err);
	if (failed == 0) {
		failed = session_policy_parse(path, text.data != NULL ? text.data : "", text.len,
		                              ret, diags, err);
	}
	if (text.data != NULL) {
		explicit_bzero(text.data, text.size);
	}
	return failed;
}

const struct session_threshold *session_policy_threshold(const struct session_policy *p,
                                                         const char *name)
{
	return ARRAY_FIND(threshold, p->thresholds, p->n_thresholds,
	                  strcmp(threshold->name, name) == 0);
}

bool session_policy_sends(const struct session_policy *p)
{
	return p->audit_enabled && ARRAY_HAS(e, p->exports, p->n_exports, e->kind == EXPORT_OTEL);
}

/* ---- durations ----------------------------------------------------------- */

static const char *trim_spaces(const char *s, size_t *len)
{
	while (*len > 0 && isspace((unsigned char)s[0])) {
		s++;
		(*len)--;
	}
	while (*len > 0 && isspace((unsigned char)s[*len - 1])) {
		(*len)--;
	}
	return s;
}

static uint64_t unit_ms(char c)
{
	switch (c) {
	case 's':
	case 'S':
		return SECOND_MS;
	case 'm':
	case 'M':
		return 60 * SECOND_MS;
	case 'h':
	case 'H':
		return 3600 * SECOND_MS;
	default:
		return 0;
	}
}

bool session_duration_parse(const char *s, uint64_t *ret_ms)
{
	size_t len = strlen(s);
	struct decimal d;
	uint64_t ms = 0;

	s = trim_spaces(s, &len);
	uint64_t unit = len > 0 ? unit_ms(s[len - 1]) : 0;
	if (unit != 0) {
		len--;
		s = trim_spaces(s, &len);
	}
	/* A fraction of a millisecond is rounded up, so a time is never rounded to 0. */
	if (!decimal_parse(s, len, &d) ||
	    decimal_times(&d, unit != 0 ? unit : SECOND_MS, MAX_SESSION_SECONDS * SECOND_MS, &ms) ==
	            DECIMAL_MORE) {
		return false;
	}
	*ret_ms = ms;
	return true;
}
