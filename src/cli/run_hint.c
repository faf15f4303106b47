/* run_hint.c - after a command line that names the wrong thing, says which one was probably meant.
 */
#include "cli/run_hint.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "base/shell_quote.h"
#include "base/visible.h"
#include "cli/say.h"
#include "cli/setup_client.h"
#include "cli/screen.h"
#include "policy/owner.h"
#include "policy/path.h"
#include "skill/skill.h"

/* Writes the start of a command line with the options that were given. */
static void put_run(struct buf *out, const char *what, const struct request *r)
{
	buf_addf(out, "%s: skillsandbox run", what);
	for (size_t i = 0; i < r->operands.n_before; i++) {
		buf_addc(out, ' ');
		shell_quote(out, r->operands.before[i]);
	}
}

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
		put_run(out, "for a bare command", r);
		buf_adds(out, " --");
		put_words(out, r->operands.v);
	}
}

/* "run NAME": the word is the name of a skill in a usual place. */
static void hint_name(struct buf *out, const struct request *r)
{
	const struct setup_client *c;

	for (size_t i = 0; out->len == 0 && (c = setup_client_at(i)) != NULL; i++) {
		auto_buf dir = BUF(PATH_MAX);
		buf_addf(&dir, "%s/%s/%s", r->owner.home, c->skills, r->operands.v[0]);
		if (!dir.failed && skill_is_one(dir.data)) {
			put_run(out, "for the skill of this name", r);
			buf_addc(out, ' ');
			shell_quote(out, dir.data);
			put_words(out, r->operands.v + 1);
		}
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
			const char *name = file + strlen(dir) + 1;
			bool script = !skill_file_names_one(name);
			put_run(out, script ? "for this script of a skill" : "for this skill", r);
			buf_addc(out, ' ');
			shell_quote(out, dir);
			if (script) {
				buf_addc(out, ' ');
				shell_quote(out, name);
			}
			put_words(out, r->operands.v + 1);
			return;
		}
	}
}

/* Returns whether the file is a script whose interpreter does not exist. Then `first` becomes the
 * script's first word: "#!" and the path of the interpreter. */
static bool lacks_interpreter(const char *file, char *first, size_t size)
{
	auto_fd fd = open(file, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, first, size - 1) : 0;

	first[n > 0 ? n : 0] = '\0';
	first[strcspn(first, " \t\n")] = '\0';
	return strncmp(first, "#!/", 3) == 0 && access(first + 2, F_OK) != 0;
}

/* "run -- PROGRAM": the sandbox does not have the program, or it does not have its interpreter. */
static void hint_program(struct buf *out, const struct request *r)
{
	const char *word = r->operands.v[0];
	bool named = strchr(word, '/') != NULL;
	auto_free char *file = named ? realpath(word, NULL) : owner_find_program(&r->owner, word);
	auto_free char *dir = file != NULL ? path_parent(file) : NULL;
	char first[256];

	if (file == NULL) {
		buf_adds(out, named ? "there is no such file outside the sandbox either"
		                    : "no directory of your PATH has a program of this name");
	} else if (lacks_interpreter(file, first, sizeof(first))) {
		buf_addf(out, "its first line names '%s', which does not exist", first + 2);
	} else if (dir != NULL) {
		put_run(out, "the sandbox does not show it; to show it", r);
		buf_adds(out, " --read ");
		shell_quote(out, named ? file : dir);
		buf_adds(out, " --");
		put_words(out, r->operands.v);
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
		if (out.len == 0) {
			hint_name(&out, r);
		}
	} else if (!r->operands.dashes && there && S_ISREG(st.st_mode)) {
		hint_script(&out, r);
	}
	if (out.len > 0 && !out.failed) {
		visible_addf(&shown, "  help: %s\n", out.data);
		(void)screen_text(STDERR_FILENO, &shown);
	}
}
