/* cmd_inspect.c - prints the resolved plan: what the skill asks for, what it is granted, what it is
 * denied and why. `run --dry-run` prints the same. */
#include <unistd.h>

#include "base/own.h"
#include "base/visible.h"
#include "cli/cli.h"
#include "cli/say.h"
#include "cli/screen.h"
#include "skill/programs.h"

int cmd_inspect_print(const struct ssb_plan *plan, bool as_json)
{
	auto_free char *text = as_json ? ssb_plan_json(plan) : ssb_plan_text(plan);
	auto_buf out = BUF(SAY_MAX);

	if (text == NULL) {
		return say_fail(EXIT_SANDBOX, "out of memory");
	}
	if (as_json) {
		buf_adds(&out, text); /* the function that wrote the text has escaped it */
	} else {
		visible_text(&out, text, true);
	}
	if (out.len > 0 && out.data[out.len - 1] != '\n') {
		buf_addc(&out, '\n');
	}
	return (as_json ? say_out : screen_text)(STDOUT_FILENO, &out);
}

/* A program of an image is not looked for. */
static void say_no_program(const struct ssb_plan *plan)
{
	AUTO(diags_freep) struct ssb_diags *diags = ssb_diags_new();

	if (plan->argv.n > 0 && plan->manifest != NULL && plan->rootfs.path == NULL &&
	    !plan->by_script && !skill_format_derived(plan->format)) {
		programs_warn(plan->manifest, &(struct mtext){ .s = plan->argv.v[0] }, SSB_WARNING,
		              diags);
		say_diags(diags, SSB_WARNING);
	}
}

int cmd_inspect(struct request *r)
{
	AUTO(plan_freep) struct ssb_plan *plan = NULL;
	int status = EXIT_FINE;

	if (request_plan(r, NULL, &plan, &status) != 0) {
		return status;
	}
	say_no_program(plan);
	return cmd_inspect_print(plan, request_has(r, FLAG_JSON));
}
