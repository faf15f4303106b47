/* request.c - turns the words of a command line into a plan. */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "base/json.h"
#include "base/name.h"
#include "base/own.h"
#include "cli/consent_run.h"
#include "cli/run_hint.h"
#include "cli/say.h"
#include "image/image.h"
#include "policy/decide.h"
#include "policy/options.h"
#include "policy/owner.h"

int exit_status_of(const struct ssb_error *err, bool named_program)
{
	switch (err->code) {
	case SSB_E_USAGE:
		return EXIT_USAGE;
	case SSB_E_NOT_FOUND:
		return named_program ? EXIT_NOT_FOUND : EXIT_SANDBOX;
	case SSB_E_NOT_EXEC:
		return EXIT_NOT_EXEC;
	default:
		return EXIT_SANDBOX;
	}
}

int exit_status_told(const struct ssb_error *err)
{
	say_error(err);
	return exit_status_of(err, false);
}

static int take_option(void *ctx, const struct option_row *row, const char *value,
                       struct ssb_error *err)
{
	struct request *r = ctx;

	if (row->id == FLAG_SKILLS || row->id == FLAG_AGAINST) {
		if (r->n_skills == MAX_SERVED) {
			return ssb_fail(err, SSB_E_USAGE, 0, "", "more than %d --%s", MAX_SERVED,
			                row->name);
		}
		r->skills[r->n_skills++] = (char *)value;
	}
	if (row->id >= FLAG_FIRST) {
		r->flags |= UINT64_C(1) << (row->id - FLAG_FIRST);
		r->values[row->id - FLAG_FIRST] = value;
		return 0;
	}
	if (ssb_options_set(r->options, (enum ssb_option)row->id, value, err) != 0) {
		return -1;
	}
	if (r->command->bit == ON_SETUP) {
		if (r->n_passed == MAX_PASSED) {
			return ssb_fail(err, SSB_E_USAGE, 0, "",
			                "more than %d options for the server", MAX_PASSED);
		}
		r->passed[r->n_passed++] = (struct passed_option){ row, value };
	}
	r->given |= 1U << row->id;
	if (row->id == SSB_OPT_BEST_EFFORT && r->n_best_effort < MAX_BEST_EFFORT) {
		r->best_effort[r->n_best_effort++] = value;
	}
	return 0;
}

int request_parse(struct request *r, const struct command *c, char **argv, struct ssb_error *err)
{
	struct option_parse parse = { FLAGS, N_FLAGS, c->bit, c->mixed, take_option, r };

	*r = (struct request){ .command = c };
	if (c->owner) {
		r->options = ssb_options_new();
		if (r->options == NULL) {
			return ssb_fail(err, SSB_E_NOMEM, 0, "", "out of memory");
		}
	}
	if (cli_options_parse(&parse, argv, &r->operands, err) != 0) {
		return -1;
	}
	if (c->owner && (r->given >> SSB_OPT_TOOLCHAIN & 1) == 0) {
		/* The interpreter is the one that the shell would find, unless the policy file says
		 * otherwise: the same one at a terminal, in a pipe and under an agent. */
		return ssb_options_set(r->options, SSB_OPT_TOOLCHAIN, "default", err);
	}
	return 0;
}

void request_done(struct request *r)
{
	ssb_options_free(r->options);
	r->options = NULL;
	owner_done(&r->owner);
}

const struct owner *request_owner(struct request *r, struct ssb_error *err)
{
	return r->owner.home != NULL || owner_load(&r->owner, err) == 0 ? &r->owner : NULL;
}

static void print_failure(int status, const struct ssb_error *err)
{
	auto_buf out = BUF(SAY_MAX);
	struct json j = JSON_TO(&out, false);

	json_open(&j, '{');
	json_kint(&j, "exit_status", status);
	json_kopen(&j, "error", '{');
	json_kstr(&j, "code", name_of_code(err->code));
	json_kstr(&j, "where", err->where);
	json_kstr(&j, "text", err->text);
	json_close(&j, '}');
	say_kept(&j);
	json_close(&j, '}');
	buf_addc(&out, '\n');
	(void)say_out(STDERR_FILENO, &out);
}

const char *request_session(const struct request *r)
{
	const char *id = request_value(r, FLAG_SESSION);

	id = id != NULL ? id : getenv("SKILLSANDBOX_SESSION");
	return id != NULL && (id[0] != '\0' || request_has(r, FLAG_SESSION)) ? id : NULL;
}

static int fail_printed(const struct request *r, const struct ssb_error *err, int status)
{
	if (r->command->bit == ON_RUN && request_has(r, FLAG_JSON) &&
	    !request_has(r, FLAG_DRY_RUN)) {
		print_failure(status, err);
	}
	return status;
}

int request_fail(const struct request *r, const struct ssb_error *err, int status)
{
	say_error(err);
	if (r->command->bit == ON_RUN) {
		run_hint(r, err);
	}
	return fail_printed(r, err, status);
}

/* Returns true if the error was already printed as a finding. The error's text may be only the
 * beginning of the finding's text. */
static bool is_finding(const struct ssb_error *err, const struct ssb_diags *diags)
{
	for (size_t i = 0; i < ssb_diags_count(diags); i++) {
		const struct ssb_diag *d = ssb_diags_get(diags, i);
		if (d->severity == SSB_ERROR &&
		    strncmp(d->where, err->where, sizeof(err->where) - 1) == 0 &&
		    strncmp(d->text, err->text, strnlen(d->text, sizeof(err->text) - 1)) == 0) {
			return true;
		}
	}
	return false;
}

static bool has_path(const struct ssb_options *o)
{
	return ARRAY_HAS(e, o->env.v, o->env.n,
	                 strcmp(*e, "PATH") == 0 || strncmp(*e, "PATH=", 5) == 0);
}

/* Uses the image as root file system, with the image's own working directory. The image's PATH is
 * used only if the owner gave none. */
static int set_image(struct request *r, struct image *i, struct ssb_error *err)
{
	auto_free char *path = NULL;

	if (ssb_options_set(r->options, SSB_OPT_ROOTFS, i->rootfs, err) != 0) {
		return -1;
	}
	r->options->workdir = steal_ptr(&i->workdir);
	if (i->path == NULL || has_path(r->options)) {
		return 0;
	}
	if (asprintf(&path, "PATH=%s", i->path) < 0) {
		path = NULL;
		return ssb_fail(err, SSB_E_NOMEM, 0, "--image", "out of memory");
	}
	return ssb_options_set(r->options, SSB_OPT_ENV, path, err);
}

/* Unpacks the image if that was not done before, and makes it the root file system in the options.
 * Does nothing without --image. Must not be called twice for the same request. */
static int take_image(struct request *r, struct ssb_error *err)
{
	AUTO(image_done) struct image image = { 0 };

	if (!request_has(r, FLAG_IMAGE) || r->options == NULL) {
		return 0;
	}
	if (r->options->rootfs != NULL) {
		return ssb_fail(
		        err, SSB_E_USAGE, 0, "--image",
		        "an image is a root file system, too: give --image or --rootfs, not both");
	}
	const struct owner *owner = request_owner(r, err);
	return owner == NULL || image_use(owner, request_value(r, FLAG_IMAGE), &image, err) != 0
	               ? -1
	               : set_image(r, &image, err);
}

/* Returns whether the command gets a terminal of its own that shows what a person types and reads.
 */
static bool is_interactive(const struct request *r)
{
	return (r->command->bit & (ON_RUNS | ON_INSPECT)) != 0 && r->options->tty != TTY_NO &&
	       isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;
}

static int plan_bare(struct request *r, char *const fallback[], struct planned *p,
                     struct ssb_error *err)
{
	char *const *argv = r->operands.n > 0 ? r->operands.v : fallback;

	if (argv == NULL) {
		return ssb_fail(err, SSB_E_USAGE, 0, "", "%s needs %s", r->command->name,
		                r->operands.dashes ? "a command after --" : "a DIR, or -- CMD");
	}
	const struct plan_request q = { .owner = request_owner(r, err),
		                        .options = r->options,
		                        .args = argv,
		                        .interactive = is_interactive(r) };
	return q.owner != NULL ? plan_decide(&q, &p->plan, p->diags, err) : -1;
}

static void planned_done(struct planned *p)
{
	ssb_plan_free(p->plan);
	ssb_diags_free(p->diags);
}

int request_plan(struct request *r, char *const fallback[], struct ssb_plan **ret_plan,
                 int *ret_status)
{
	AUTO(planned_done) struct planned p = { .diags = ssb_diags_new() };
	bool bare = r->operands.dashes || r->operands.n == 0;
	struct ssb_error err = { 0 };

	if (p.diags == NULL) {
		say_errorf("out of memory");
		*ret_status = EXIT_SANDBOX;
		return -1;
	}
	int rc = take_image(r, &err);
	bool program = rc == 0 && bare; /* the image was found, so "not found" means the program */
	rc = rc != 0 ? rc : bare ? plan_bare(r, fallback, &p, &err) : consent_plan(r, &p, &err);
	bool shown = rc == 0 && (r->command->bit == ON_INSPECT || request_has(r, FLAG_DRY_RUN));
	if (request_has(r, FLAG_VERBOSE)) {
		say_diags(p.diags, SSB_NOTE);
	} else if (!shown) {
		/* A plan that is printed contains the findings itself. */
		say_diags(p.diags, SSB_ALARM);
	}
	if (rc != 0) {
		*ret_status = exit_status_of(&err, program);
		*ret_status = is_finding(&err, p.diags) ? fail_printed(r, &err, *ret_status)
		                                        : request_fail(r, &err, *ret_status);
		return -1;
	}
	*ret_plan = steal_ptr(&p.plan);
	return 0;
}
