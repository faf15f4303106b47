/* bind.c - finds or starts the session of a run. */
#include "serve/bind.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/diag.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/own.h"
#include "base/sha256.h"
#include "session/session.h"

#define PREFIX "mcp-"

struct binding {
	const struct serve *serve;
	struct session_policy policy; /* from --session-policy */
	char shared[SESSION_ID]; /* session of all clients without an id, so that a new connection
	                            gives no new budget */
};

/* Names the session of all clients that send no session id. If a token is set, the name is made
 * from it, so that the clients with this token have the same session on every server. */
static int name_shared(struct binding *b, struct ssb_error *err)
{
	static const char SALT[] = "skillsandbox session of a token";
	const char *token = b->serve->opt->http != NULL ? b->serve->opt->token : NULL;
	uint8_t bytes[SHA256_BYTES];
	char hex[2 * SHA256_BYTES + 1];
	struct sha256 h;

	if (token != NULL) {
		sha256_init(&h);
		sha256_update(&h, SALT, sizeof(SALT));
		sha256_update(&h, token, strlen(token));
		sha256_final(&h, bytes);
	} else if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) {
		return ssb_fail(err, SSB_E_SYS, errno, "serve", "getrandom");
	}
	hex_encode(bytes, sizeof(bytes), hex);
	snprintf(b->shared, sizeof(b->shared), PREFIX "%.32s", hex);
	return 0;
}

/* Checks the session of --session when the server starts: if it does not exist or is over, it
 * would refuse every run. A paused one is accepted, because it may be resumed. */
static int check_named(const struct owner *o, const char *id, struct ssb_error *err)
{
	auto_free struct session *s = calloc(1, sizeof(*s));
	struct session_store *store = NULL;

	if (!session_id_valid(id)) {
		return ssb_fail(err, SSB_E_USAGE, 0, "", "--session: '%.64s' is not a session id",
		                id);
	}
	if (s == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "serve", "out of memory");
	}
	if (session_store_open(o, &store, err) != 0) {
		return -1;
	}
	int rc = session_get(store, id, s, err);
	session_store_close(store);
	if (rc != 0 && err->code == SSB_E_NOT_FOUND) {
		*err = (struct ssb_error){ 0 };
		return ssb_fail(err, SSB_E_USAGE, 0, "",
		                "there is no session '%s' (--session, SKILLSANDBOX_SESSION): "
		                "'skillsandbox session list' shows all sessions, 'skillsandbox "
		                "session start' starts one",
		                id);
	}
	if (rc == 0 && session_is_over(s->state)) {
		return ssb_fail(
		        err, SSB_E_POLICY, 0, "",
		        "session '%s' (--session, SKILLSANDBOX_SESSION) is %s and runs nothing any "
		        "more; 'skillsandbox session start' starts a new one",
		        id, session_state_name(s->state));
	}
	return rc;
}

/* Loads the policy. If the file has findings, *err is the first of them. */
static int load_policy(const char *file, struct session_policy *ret, struct ssb_error *err)
{
	AUTO(diags_freep) struct ssb_diags *diags = ssb_diags_new();

	if (diags == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "serve", "out of memory");
	}
	if (session_policy_load(file, ret, diags, err) == 0) {
		return 0;
	}
	if (ssb_diags_count(diags) > 0) {
		const struct ssb_diag *d = ssb_diags_get(diags, 0);
		*err = (struct ssb_error){ 0 };
		ssb_fail(err, SSB_E_POLICY, 0, d->where, "%s", d->text);
	}
	return -1;
}

int bind_new(struct serve *s, struct binding **ret, struct ssb_error *err)
{
	struct binding *b = calloc(1, sizeof(*b));
	const char *id = s->opt->session;
	const char *file = s->opt->session_policy;

	if (b == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "serve", "out of memory");
	}
	b->serve = s;
	if (id != NULL && file != NULL) {
		free(b);
		return ssb_fail(err, SSB_E_USAGE, 0, "",
		                "give --session or --session-policy, not both: a session already "
		                "has a policy");
	}
	if ((id != NULL && check_named(&s->owner, id, err) != 0) ||
	    (file != NULL && load_policy(file, &b->policy, err) != 0) || name_shared(b, err) != 0) {
		bind_free(b);
		return -1;
	}
	*ret = b;
	return 0;
}

void bind_free(struct binding *b)
{
	if (b != NULL) {
		session_policy_done(&b->policy);
	}
	free(b);
}

/* Returns the id of the session that Codex puts into each call. The metadata is an object, or a
 * text that contains one. */
static const char *meta_session(const struct mcp_call *c, struct json_doc *doc)
{
	static const char *const NAMES[] = { "session_id", "thread_id" };
	const struct json_node *meta = mcp_meta(c, "x-codex-turn-metadata");
	const struct json_doc *where = mcp_doc(c);
	const char *why = NULL;

	if (json_is(meta, JSON_STRING)) {
		meta = json_read(doc, meta->str, meta->len, &why) == 0 ? json_top(doc) : NULL;
		where = doc;
	}
	for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
		const char *id = json_string(json_member(where, meta, NAMES[i]), "");
		if (id[0] != '\0') {
			return id;
		}
	}
	return NULL;
}

/* Writes "mcp-" and the client's own id. If that is not a valid session id, writes "mcp-" and the
 * digest of the client's id. */
static void name_session(const char *client, char ret[SESSION_ID])
{
	uint8_t hash[SHA256_BYTES];
	char hex[2 * SHA256_BYTES + 1];

	if (strlen(client) < SESSION_ID - sizeof(PREFIX)) {
		snprintf(ret, SESSION_ID, PREFIX "%s", client);
		if (session_id_valid(ret)) {
			return;
		}
	}
	sha256(client, strlen(client), hash);
	hex_encode(hash, sizeof(hash), hex);
	snprintf(ret, SESSION_ID, PREFIX "%.32s", hex);
}

/* Makes an agent's id from the client's name, which may be any text: "Claude Desktop" becomes
 * Claude-Desktop. The result is "" if nothing of the name is left; then the agent of the policy is
 * used. */
static void name_agent(const char *client, char ret[SESSION_ID])
{
	size_t n = 0;

	for (const char *at = client; *at != '\0' && n < SESSION_ID - 1; at++) {
		bool letter = (*at >= '0' && *at <= '9') || (*at >= 'A' && *at <= 'Z') ||
		              (*at >= 'a' && *at <= 'z');
		bool sign = *at == '.' || *at == '_' || *at == '-';
		if (letter || n > 0) {
			ret[n++] = letter || sign ? *at : '-';
		}
	}
	ret[n] = '\0';
}

/* Gets the session, or starts it if it does not exist. A session that has ended stays ended and
 * refuses its runs. */
static int ensure_in(struct session_store *store, const struct bound *x, struct session *s,
                     struct decision *d, struct ssb_error *err)
{
	struct session_request q = { .id = x->id,
		                     .agent = x->agent[0] != '\0' ? x->agent : NULL,
		                     .policy = &x->binding->policy };
	struct ssb_error again = { 0 };

	if (session_get(store, x->id, s, err) == 0) {
		return 0;
	}
	if (err->code != SSB_E_NOT_FOUND) {
		return -1;
	}
	*err = (struct ssb_error){ 0 };
	/* Another call of the same client may have started the session meanwhile. */
	return session_start(store, &q, d, err) == 0 || session_get(store, x->id, s, &again) == 0
	               ? 0
	               : -1;
}

int bind_ensure(const void *arg, struct ssb_error *err)
{
	const struct bound *x = arg;
	struct session_store *store = NULL;
	auto_free struct session *s = calloc(1, sizeof(*s));
	auto_free struct decision *d = calloc(1, sizeof(*d));

	if (!x->own) {
		return 0;
	}
	assert(x->id[0] != '\0' && x->binding != NULL);
	if (s == NULL || d == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "serve", "out of memory");
	}
	if (session_store_open(&x->binding->serve->owner, &store, err) != 0) {
		return -1;
	}
	int rc = ensure_in(store, x, s, d, err);
	session_store_close(store);
	return rc;
}

void bind_of(const struct binding *b, const struct mcp_call *c, struct bound *ret)
{
	const struct serve_options *o = b->serve->opt;
	AUTO(json_doc_done) struct json_doc doc = { 0 };

	*ret = (struct bound){ .binding = b,
		               .own = o->session == NULL && o->session_policy != NULL };
	if (!ret->own) {
		snprintf(ret->id, sizeof(ret->id), "%s", o->session != NULL ? o->session : "");
		return;
	}
	/* The client on standard input started this server, so it is believed. A client on a socket
	 * could claim another session with each call. */
	bool started_us = o->http == NULL && o->socket == NULL;
	const char *client = owner_getenv(&b->serve->owner, "CLAUDE_CODE_SESSION_ID");
	if ((client == NULL || client[0] == '\0') && started_us) {
		client = meta_session(c, &doc);
	}
	if (client != NULL && client[0] != '\0') {
		name_session(client, ret->id);
	} else {
		snprintf(ret->id, sizeof(ret->id), "%s", b->shared);
	}
	name_agent(mcp_client_name(c), ret->agent);
}
