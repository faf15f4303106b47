/* run_hint.c - after a command line that names the wrong thing, says which one was probably meant.
 */
#include "cli/run_hint.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/own.h"
#include "base/shell_quote.h"
#include "base/visible.h"
#include "cli/say.h"
#include "cli/screen.h"
#include "policy/owner.h"
#include "policy/path.h"
#include "skill/skill.h"

static void put_words(struct buf *out, char *const words[])
{
	for (size_t i = 0; words[i] != NULL; i++) {
		buf_addc(out, ' ');
		shell_quote(out, words[i]);
	}
}

/* "run python3 x.py": the first word is a program, and no directory of a skill. */
static void hint_command(struct buf *out, const struct request *r)
{
	auto_free char *file = owner_find_program(&r->owner, r->operands.v[0]);

	if (file != NULL) {
		buf_adds(out, "for a bare command: skillsandbox run --");
		put_words(out, r->operands.v);
	}
}

/* "run SKILL/scripts/x.py": the first word is a file in the directory of a skill. */
static void hint_script(struct buf *out, const struct request *r)
{
	auto_free char *dir = realpath(r->operands.v[0], NULL);
	auto_free char *file = dir != NULL ? strdup(dir) : NULL;

	for (char *end; file != NULL && (end = strrchr(dir, '/')) != NULL && end > dir;) {
		*end = '\0';
		if (skill_is_one(dir)) {
			buf_adds(out, "for this script of a skill: skillsandbox run ");
			shell_quote(out, dir);
			buf_addc(out, ' ');
			shell_quote(out, file + strlen(dir) + 1);
			put_words(out, r->operands.v + 1);
			return;
		}
	}
}

/* "run -- PROGRAM": the sandbox does not have the program. */
static void hint_program(struct buf *out, const struct request *r)
{
	auto_free char *file = owner_find_program(&r->owner, r->operands.v[0]);
	auto_free char *dir = file != NULL ? path_parent(file) : NULL;

	if (dir != NULL) {
		buf_adds(out, "it is in ");
		shell_quote(out, dir);
		buf_adds(out, ", which the sandbox does not show; to show it: --read ");
		shell_quote(out, dir);
	} else if (strchr(r->operands.v[0], '/') == NULL) {
		buf_adds(out, "no directory of your PATH has a program of this name");
	}
}

void run_hint(const struct request *r, const struct ssb_error *err)
{
	const char *first = r->operands.n > 0 ? r->operands.v[0] : NULL;
	auto_buf out = BUF(SAY_MAX);
	auto_buf shown = BUF(SAY_MAX);
	struct stat st;

	if (first == NULL || (err->code != SSB_E_NOT_FOUND && err->code != SSB_E_USAGE)) {
		return;
	}
	bool there = stat(first, &st) == 0;
	if (r->operands.dashes && err->code == SSB_E_NOT_FOUND) {
		hint_program(&out, r);
	} else if (!r->operands.dashes && !there && strchr(first, '/') == NULL) {
		hint_command(&out, r);
	} else if (!r->operands.dashes && there && S_ISREG(st.st_mode)) {
		hint_script(&out, r);
	}
	if (out.len > 0 && !out.failed) {
		visible_addf(&shown, "  help: %s\n", out.data);
		(void)screen_text(STDERR_FILENO, &shown);
	}
}
