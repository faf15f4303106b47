/* cmd_allow.c - remembers grants for a skill, as a part of its approval: those that you name, or
 * those that would allow what was denied in a run. Also lists and forgets remembered grants. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "cli/cli.h"
#include "cli/cli_record.h"
#include "cli/remember.h"
#include "cli/say.h"
#include "consent/consent.h"
#include "policy/options.h"
#include "policy/path.h"
#include "policy/preset.h"

/* The lists of struct ssb_options that `allow` remembers. */
static const struct {
	enum ssb_option option;
	size_t at;
} LISTS[] = {
	{ SSB_OPT_NET, offsetof(struct ssb_options, net) },
	{ SSB_OPT_READ, offsetof(struct ssb_options, read) },
	{ SSB_OPT_WRITE, offsetof(struct ssb_options, write) },
	{ SSB_OPT_ENV, offsetof(struct ssb_options, env) },
};

/* Moves the grants of the command line to `fresh`. Plans must not contain them as options, because
 * the owner's options need no approval. */
static int take_options(struct request *r, const struct owner *o, const char *reason,
                        struct lock *fresh, struct ssb_error *err)
{
	for (size_t i = 0; i < ARRAY_LEN(LISTS); i++) {
		struct string_list *l = (struct string_list *)((uintptr_t)r->options + LISTS[i].at);
		AUTO(string_list_done) struct string_list items = { 0 };
		bool net = LISTS[i].option == SSB_OPT_NET;

		/* A set of hosts is stored as the list of its hosts, because a later version may
		 * have other hosts in the set. */
		for (size_t k = 0; k < l->n; k++) {
			if (net ? preset_expand_net(l->v[k], &items, err) != 0
			        : string_list_add(&items, l->v[k], MAX_GRANTS) != 0) {
				return net ? -1
				           : ssb_fail(err, SSB_E_NOMEM, 0, "", "out of memory");
			}
		}
		for (size_t k = 0; k < items.n; k++) {
			const struct given g = { .option = LISTS[i].option,
				                 .value = items.v[k],
				                 .reason = (char *)(uintptr_t)reason };
			if (remember_add(o, &g, fresh, err) != 0) {
				return -1;
			}
		}
		string_list_done(l);
		*l = (struct string_list){ 0 };
	}
	return 0;
}

/* ---- what a run was denied ----------------------------------------------------------- */

/* Finds the last run of the skill in `dir`, and writes its id. */
static int find_run(const struct owner *o, const char *dir, char ret[RUN_ID_SIZE],
                    struct ssb_error *err)
{
	AUTO(runs_done) struct runs runs = RUNS_NONE;

	if (runs_open(&runs, o->state_dir, err) != 0) {
		return -1;
	}
	runs_stat(&runs);
	for (size_t i = 0; i < runs.n; i++) {
		auto_fd fd = runs_record(&runs, &runs.v[i]);
		auto_free char *of = fd >= 0 ? run_facts_skill_dir(fd) : NULL;
		if (of != NULL && strcmp(of, dir) == 0) {
			memcpy(ret, runs.v[i].id, RUN_ID_SIZE);
			return 0;
		}
	}
	return ssb_fail(err, SSB_E_NOT_FOUND, 0, "", "the skill '%.200s' has no recorded run", dir);
}

/* Opens the record that the operand selects: without an operand, that of the last run; for a
 * skill's directory, that of its last run; otherwise that of the run with this id. */
static int open_run(const char *word, struct record_request *q, struct ssb_error *err)
{
	auto_free char *dir = word != NULL ? realpath(word, NULL) : NULL;
	char id[RUN_ID_SIZE] = "";
	struct stat st;

	if (owner_load(&q->owner, err) != 0) {
		return -1;
	}
	if (dir != NULL && stat(dir, &st) == 0 && S_ISDIR(st.st_mode)) {
		if (find_run(&q->owner, dir, id, err) != 0) {
			return -1;
		}
		word = id;
	} else if (word != NULL && strpbrk(word, "/.") != NULL) {
		return ssb_fail(err, SSB_E_USAGE, 0, "", "'%.200s' is not a skill's directory",
		                word);
	}
	return run_file_open(&q->file, q->owner.state_dir, word != NULL ? word : "last", err);
}

static int allow_denied(struct request *r, struct lock *fresh)
{
	AUTO(cli_record_done) struct record_request q = RECORD_REQUEST_NONE;
	AUTO(overview_done) struct overview v = { 0 };
	struct ssb_error err = { 0 };
	auto_buf out = BUF(SAY_MAX), not = BUF(SAY_MAX);

	if (open_run(r->operands.n > 0 ? r->operands.v[0] : NULL, &q, &err) != 0 ||
	    overview_read(&v, q.file.fd, q.file.id, &err) != 0) {
		return exit_status_told(&err);
	}
	int status = cli_record_doubt(r, &q);
	auto_free char *dir = run_facts_skill_dir(q.file.fd);
	if (status != EXIT_FINE) {
		return status;
	}
	if (dir == NULL) {
		return say_fail(EXIT_USAGE,
		                "run %.8s was a command and not a skill, so it has no approval",
		                q.file.id);
	}
	if (remember_denied(&q.owner, &v, q.file.id, fresh, &not ) != 0 ||
	    remember_judge(&q.owner, r->options, dir, fresh, &not, &err) != 0) {
		say_error(&err);
		return EXIT_SANDBOX;
	}
	if (not .len > 0) {
		buf_addf(&out, "skillsandbox: denied in run %.8s, and cannot be remembered:\n%s",
		         q.file.id, not .failed ? "" : not .data);
		(void)say_out(STDERR_FILENO, &out);
	}
	if (fresh->n_allowed == 0) {
		return say_fail(EXIT_FINDINGS,
		                "run %.8s has no denial that an approval can remember", q.file.id);
	}
	return cmd_approve_with(r, &q.owner, dir, fresh);
}

/* ---- what you name ------------------------------------------------------------------- */

static int allow_named(struct request *r, const struct owner *o, const char *dir,
                       struct lock *fresh)
{
	struct ssb_error err = { 0 };
	auto_buf not = BUF(SAY_MAX), out = BUF(SAY_MAX);

	if (remember_judge(o, r->options, dir, fresh, &not, &err) != 0) {
		return exit_status_told(&err);
	}
	if (not .len > 0) {
		buf_addf(&out, "skillsandbox: nothing was remembered, because this cannot be:\n%s",
		         not .failed ? "" : not .data);
		(void)say_out(STDERR_FILENO, &out);
		return EXIT_FINDINGS;
	}
	return cmd_approve_with(r, o, dir, fresh);
}

/* ---- forgetting ---------------------------------------------------------------------- */

/* Adds to `what` the remembered grants that the word names: by their value, or by their text in a
 * question. */
static int find_named(const struct lock *l, const struct owner *o, const char *word,
                      struct lock *what)
{
	const size_t before = what->n_allowed;
	char pretty[MAX_PATH_BYTES];
	auto_free char *real = path_real(word);

	if (real != NULL) {
		path_pretty(o, real, pretty, sizeof(pretty));
	}
	for (size_t i = 0; i < l->n_allowed; i++) {
		const struct given *g = &l->allowed[i];
		auto_free char *item = given_item(g->option, g->value);
		bool is = strcmp(g->value, word) == 0 ||
		          (item != NULL && strcmp(item, word) == 0) ||
		          (real != NULL && strcmp(g->value, pretty) == 0);
		if (is && lock_allow(what, g) != 0) {
			return -1;
		}
	}
	return what->n_allowed > before ? 0 : -1;
}

static int forget_grants(struct request *r, const struct owner *o, struct lock *what)
{
	AUTO(lock_done) struct lock l = { 0 };
	struct ssb_error err = { 0 };
	size_t n = 0;
	auto_free char *dir = path_real(r->operands.v[0]);

	if (dir == NULL) {
		return say_fail(EXIT_SANDBOX, "%s: directory not found", r->operands.v[0]);
	}
	if (lock_load(o, dir, &l, &err) != 0) {
		say_error(&err);
		return EXIT_SANDBOX;
	}
	for (int i = 1; i < r->operands.n; i++) {
		if (find_named(&l, o, r->operands.v[i], what) != 0) {
			return say_fail(
			        EXIT_USAGE,
			        "'%s' is not a remembered grant of this skill; to see them: "
			        "skillsandbox allow --list",
			        r->operands.v[i]);
		}
	}
	if (lock_forget(o, dir, what->allowed, what->n_allowed, &n, &err) != 0) {
		say_error(&err);
		return EXIT_SANDBOX;
	}
	if (n == 0) {
		return say_fail(EXIT_USAGE, "no such grant was remembered for this skill");
	}
	say_notef("%zu grant%s forgotten", n, n == 1 ? " was" : "s were");
	return EXIT_FINE;
}

/* ---- the command --------------------------------------------------------------------- */

static int allow_with(struct request *r, const struct owner *o, struct lock *fresh)
{
	const bool last = request_has(r, FLAG_LAST), revoke = request_has(r, FLAG_REVOKE);
	const bool list = request_has(r, FLAG_LIST);
	const int most = revoke ? MAX_GRANTS : 1, least = last || list ? 0 : 1;
	const int n = r->operands.n;

	if (last + revoke + list > 1 || n < least || n > most || r->operands.dashes) {
		return say_fail(EXIT_USAGE,
		                "allow needs one of: DIR with --net, --read, --write or --env; "
		                "--last [DIR|RUN]; --list [DIR]; --revoke DIR [GRANT...]");
	}
	if (revoke) {
		return forget_grants(r, o, fresh);
	}
	if (last) {
		return allow_denied(r, fresh);
	}
	auto_free char *dir = n > 0 ? realpath(r->operands.v[0], NULL) : NULL;
	if (n > 0 && dir == NULL) {
		return say_fail(EXIT_SANDBOX, "%s: directory not found", r->operands.v[0]);
	}
	if (list) {
		return cmd_approvals_list(o, dir, true, request_has(r, FLAG_JSON));
	}
	return fresh->n_allowed > 0
	               ? allow_named(r, o, dir, fresh)
	               : say_fail(EXIT_USAGE, "allow needs a grant to remember: --net HOST, --read "
	                                      "PATH, --write PATH or --env NAME");
}

int cmd_allow(struct request *r)
{
	AUTO(lock_done) struct lock fresh = { 0 };
	const char *reason = request_value(r, FLAG_REASON);
	struct ssb_error err = { 0 };
	const struct owner *o = request_owner(r, &err);

	if (reason != NULL && strlen(reason) > MAX_REASON_BYTES) {
		return say_fail(EXIT_USAGE, "--reason has more than %d bytes", MAX_REASON_BYTES);
	}
	if (o == NULL || take_options(r, o, reason != NULL ? reason : "", &fresh, &err) != 0) {
		return exit_status_told(&err);
	}
	return allow_with(r, o, &fresh);
}
