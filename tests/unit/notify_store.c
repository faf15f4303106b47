/* notify_store.c - sends messages through the real store, for tests/e2e/test_session_notify.py.
 *
 *   notify_store kill POLICY REASON  starts a session and kills it; prints its id
 *   notify_store kill POLICY         the same, but the herald dies before it sends anything
 *   notify_store ledger ID           prints the ledger of a session
 *   notify_store due                 prints 1 and starts a herald if a message is due, else 0 */
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "policy/owner.h"
#include "session/herald.h"

/* The functions of a session call this to start a herald. The linker option --wrap replaces it, so
 * that the test decides. */
int __real_herald_start(const struct owner *o, struct ssb_error *err);
int __wrap_herald_start(const struct owner *o, struct ssb_error *err);

static bool herald_dies;

int __wrap_herald_start(const struct owner *o, struct ssb_error *err)
{
	return herald_dies ? 0 : __real_herald_start(o, err);
}

static int killed(struct session_store *ss, char **argv, struct ssb_error *err)
{
	AUTO(session_policy_done) struct session_policy policy = { 0 };
	struct ssb_diags *diags = ssb_diags_new();
	struct session_request req = { .policy = &policy };
	struct decision d = { 0 };
	char id[SESSION_ID];

	int r = session_policy_load(argv[2], &policy, diags, err);
	ssb_diags_free(diags);
	if (r != 0 || session_start(ss, &req, &d, err) != 0) {
		return -1;
	}
	snprintf(id, sizeof(id), "%s", d.session);
	herald_dies = argv[3] == NULL;
	if (session_violation(ss, id, "pii_blocked", "<a>", &d, err) != 0 ||
	    session_become(ss, id, SESSION_KILLED, argv[3] != NULL ? argv[3] : "later", &d, err) !=
	            0) {
		return -1;
	}
	printf("%s\n", id);
	return 0;
}

static int line(void *arg, const char *text, size_t len)
{
	(void)arg;
	return fwrite(text, 1, len, stdout) == len ? 0 : -1;
}

static int due(struct session_store *ss, const struct owner *o, struct ssb_error *err)
{
	bool is = false;

	if (herald_due(ss, &is, err) != 0) {
		return -1;
	}
	printf("%d\n", is);
	return is ? herald_start(o, err) : 0;
}

int main(int argc, char **argv)
{
	AUTO(owner_done) struct owner o = { 0 };
	struct session_store *ss = NULL;
	struct ssb_error err = { 0 };
	int role = herald_role(argv);

	if (role >= 0) {
		return role;
	}
	if (argc < 2 || owner_load(&o, &err) != 0 || session_store_open(&o, &ss, &err) != 0) {
		fprintf(stderr, "%s: %s\n", err.where, err.text);
		return 1;
	}
	int r = strcmp(argv[1], "kill") == 0     ? killed(ss, argv, &err)
	        : strcmp(argv[1], "ledger") == 0 ? session_ledger(ss, argv[2], line, NULL, &err)
	                                         : due(ss, &o, &err);
	session_store_close(ss);
	if (r != 0) {
		fprintf(stderr, "%s: %s\n", err.where, err.text);
	}
	return r == 0 ? 0 : 1;
}
