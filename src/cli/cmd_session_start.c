/* cmd_session_start.c - starts a session and prints its id. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "base/visible.h"
#include "cli/say.h"
#include "cli/session_cli.h"
#include "policy/path.h"

/* Loads the policy of --policy, or else session.yaml beside policy.yaml. If there is neither, the
 * policy is that of an empty file. */
static int load_policy(struct session_cli *c, struct session_policy *ret, struct ssb_error *err)
{
	AUTO(diags_freep) struct ssb_diags *diags = ssb_diags_new();
	const char *file = request_value(c->r, FLAG_SESSION_POLICY);
	auto_free char *usual = path_join(c->owner.config_dir, "session.yaml");

	if (diags == NULL || usual == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "session", "out of memory");
	}
	/* A dangling symlink counts as existing, so that it is reported as an error. */
	if (file == NULL && (faccessat(AT_FDCWD, usual, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
	                     (errno != ENOENT && errno != ENOTDIR))) {
		file = usual;
	}
	if (session_policy_load(file, ret, diags, err) != 0) {
		session_cli_findings(c, diags);
		return -1;
	}
	say_diags(diags, SSB_WARNING);
	return 0;
}

static int print_session(const struct session_cli *c, const struct decision *d)
{
	auto_buf out = BUF(SAY_MAX);

	if (request_has(c->r, FLAG_JSON)) {
		return session_cli_json(d, &(struct session_told){ .action = "start" });
	}
	visible_addf(&out, "%s\n", d->session);
	return say_out(STDOUT_FILENO, &out);
}

int cmd_session_start(struct request *r)
{
	AUTO(session_cli_done) struct session_cli c = { 0 };
	AUTO(session_policy_done) struct session_policy policy = { 0 };
	struct decision d = { 0 };
	struct ssb_error err = { 0 };
	int status = session_cli_begin(&c, r);

	if (status != EXIT_FINE) {
		return status;
	}
	struct session_request q = {
		.id = request_value(r, FLAG_ID),
		.parent = request_value(r, FLAG_PARENT),
		.agent = request_value(r, FLAG_AGENT),
		.policy = &policy,
	};
	c.id = q.id;
	if (load_policy(&c, &policy, &err) != 0 || session_cli_open(&c, &err) != 0 ||
	    session_start(c.store, &q, &d, &err) != 0) {
		return session_cli_fail(&c, &err);
	}
	session_cli_mail(&c);
	(void)session_cli_done_status(&d);
	return print_session(&c, &d);
}
