/* session_policy_check.c - prints the reports of the parser about the session policies FILE..., as
 * "FILE:LINE:COLUMN: text; remedy". The exit status is 1 if the parser refuses one of them. */
#include <stdio.h>

#include "session/policy.h"

static int check(const char *file)
{
	struct ssb_diags *diags = ssb_diags_new();
	struct session_policy p;
	struct ssb_error err = { 0 };
	int failed = session_policy_load(file, &p, diags, &err);

	for (size_t i = 0; i < ssb_diags_count(diags); i++) {
		const struct ssb_diag *d = ssb_diags_get(diags, i);
		printf("%s: %s%s%s\n", d->where, d->text, d->remedy[0] != '\0' ? "; " : "",
		       d->remedy);
	}
	if (failed != 0 && ssb_diags_count(diags) == 0) {
		printf("%s: %s\n", err.where, err.text);
	}
	session_policy_done(&p);
	ssb_diags_free(diags);
	return failed;
}

int main(int argc, char **argv)
{
	int failed = 0;

	for (int i = 1; i < argc; i++) {
		failed |= check(argv[i]);
	}
	return failed != 0;
}
