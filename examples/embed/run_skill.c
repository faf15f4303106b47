/* run_skill.c - runs a skill through libskillsandbox, and says what it was denied.
 *
 *   cc run_skill.c $(pkg-config --cflags --libs skillsandbox) -o run_skill
 *   ./run_skill DIR [ARG...]
 */
#include <skillsandbox.h>
#include <stdio.h>

static void print_denials(const struct ssb_result *result)
{
	struct ssb_denials *denials = NULL;
	struct ssb_error err = { 0 };

	if (ssb_denials_read(result, &denials, &err) != 0) {
		fprintf(stderr, "run_skill: %s\n", err.text);
		return;
	}
	for (size_t i = 0; i < ssb_denials_count(denials); i++) {
		const struct ssb_denial *d = ssb_denials_get(denials, i);
		fprintf(stderr, "denied: %s: %s [%s]\n", d->what, d->why, d->reason);
		if (d->remedy[0] != '\0') {
			fprintf(stderr, "  to allow it: %s\n", d->remedy);
		}
	}
	ssb_denials_free(denials);
}

int main(int argc, char **argv)
{
	struct ssb_error err = { 0 };
	struct ssb_result result;
	struct ssb_plan *plan = NULL;
	struct ssb_options *owner = ssb_options_new();
	struct ssb_diags *findings = ssb_diags_new();
	const int streams[3] = { 0, 1, 2 };
	int status = 125;

	if (argc < 2 || owner == NULL || findings == NULL) {
		fprintf(stderr, "usage: run_skill DIR [ARG...]\n");
		return 2;
	}
	if (ssb_options_set(owner, SSB_OPT_TIMEOUT, "10s", &err) == 0 &&
	    ssb_plan_skill(owner, argv[1], argv + 2, &plan, findings, &err) == 0 &&
	    ssb_run(plan, streams, &result, &err) == 0) {
		status = result.exit_status;
		print_denials(&result);
	} else {
		for (size_t i = 0; i < ssb_diags_count(findings); i++) {
			const struct ssb_diag *d = ssb_diags_get(findings, i);
			fprintf(stderr, "%s: %s (%s)\n", d->where, d->text, d->remedy);
		}
		fprintf(stderr, "run_skill: %s: %s\n", err.where, err.text);
	}
	ssb_plan_free(plan);
	ssb_diags_free(findings);
	ssb_options_free(owner);
	return status;
}
