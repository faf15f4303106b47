/* cmd_help.c - prints help and --version, from the tables of commands and options. */
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "cli/cli.h"
#include "cli/help_table.h"
#include "cli/say.h"
#include "cli/screen.h"

#define FEW_OPTIONS 8 /* up to this many options are listed without groups */

int cmd_help_version(void)
{
	auto_buf out = BUF(SAY_MAX);

	buf_adds(&out, "skillsandbox " SSB_VERSION "\n");
	return say_out(STDOUT_FILENO, &out);
}

/* Help is laid out for people even in a pipe, because no program reads it. */
static int print_help(int fd, const struct buf *text)
{
	size_t columns = screen_columns(fd);
	auto_buf out = BUF(SAY_MAX);

	screen_fit(&out, text, columns > 0 ? columns : SCREEN_COLUMNS, SCREEN_FOLD);
	return say_out(fd, &out);
}

static void put_title(struct buf *out, const char *title)
{
	buf_addc(out, '\n');
	say_colour(out, STDOUT_FILENO, SAY_BOLD, title);
	buf_adds(out, ":\n");
}

/* ---- commands -------------------------------------------------------------------- */

/* Lists the commands of these bits under the title. Returns their number. */
static size_t list_commands(struct buf *out, const char *title, uint64_t bits)
{
	size_t n = 0;

	for (size_t i = 0; i < N_COMMANDS; i++) {
		if ((COMMANDS[i].bit & bits) == 0) {
			continue;
		}
		if (n++ == 0) {
			put_title(out, title);
		}
		buf_addf(out, "  %-17s  %s\n", COMMANDS[i].name, COMMANDS[i].summary);
	}
	return n;
}

int cmd_help_group(const char *first)
{
	size_t len = strlen(first);
	uint64_t bits = 0;
	auto_buf out = BUF(SAY_MAX);

	for (size_t i = 0; i < N_COMMANDS; i++) {
		const char *name = COMMANDS[i].name;
		bits |= strncmp(name, first, len) == 0 && name[len] == ' ' ? COMMANDS[i].bit : 0;
	}
	buf_addf(&out, "usage: skillsandbox %s COMMAND [OPTION...] ...\n", first);
	return list_commands(&out, "commands", bits) > 0 ? print_help(STDOUT_FILENO, &out) : -1;
}

#define WHAT_IT_IS "Runs an AI agent's skill with only what it declares and you grant.\n\n"

int cmd_help_usage(void)
{
	uint64_t rest = ON_ALL;
	auto_buf out = BUF(SAY_MAX);

	buf_adds(&out, WHAT_IT_IS "usage: skillsandbox COMMAND [OPTION...] ...\n");
	for (size_t i = 0; i < N_HELP_COMMANDS; i++) {
		(void)list_commands(&out, HELP_COMMANDS[i].title, HELP_COMMANDS[i].commands);
		rest &= ~HELP_COMMANDS[i].commands;
	}
	(void)list_commands(&out, "other", rest);
	buf_adds(&out, "\n'skillsandbox help COMMAND' explains a command, with examples.\n"
	               "skillsandbox(1) is the manual.\n");
	return print_help(STDOUT_FILENO, &out);
}

int cmd_help_short(void)
{
	auto_buf out = BUF(SAY_MAX);

	buf_adds(&out, WHAT_IT_IS
	         "  skillsandbox run DIR [ARG...]         run the skill in DIR\n"
	         "  skillsandbox run -- CMD [ARG...]      run a bare command\n"
	         "  skillsandbox why last                 explain what was denied in the last run\n"
	         "  skillsandbox setup claude-code        let an agent use it\n"
	         "  skillsandbox help                     list all commands\n");
	(void)print_help(STDERR_FILENO, &out);
	return EXIT_USAGE;
}

/* ---- options --------------------------------------------------------------------- */

static void put_option(struct buf *out, const struct option_row *row)
{
	char left[64];

	snprintf(left, sizeof(left), "%c%c%s--%s%s%s", row->letter != 0 ? '-' : ' ',
	         row->letter != 0 ? row->letter : ' ', row->letter != 0 ? ", " : "  ", row->name,
	         row->arg != NULL && row->arg[0] != '[' ? " " : "",
	         row->arg != NULL ? row->arg : "");
	buf_addf(out, "  %-27s  %s\n", left, row->help);
}

/* Returns the index of the option's group, or N_HELP_OPTIONS if it is in none. */
static size_t find_group(const struct option_row *row)
{
	char name[64];
	size_t i = 0;

	snprintf(name, sizeof(name), " %.60s ", row->name);
	while (i < N_HELP_OPTIONS && strstr(HELP_OPTIONS[i].names, name) == NULL) {
		i++;
	}
	return i;
}

/* Lists the command's options of one group; `group` -1: all. */
static void list_options(struct buf *out, const struct command *c, const char *title, int group)
{
	size_t n = 0;

	for (size_t i = 0; i < N_FLAGS; i++) {
		if ((FLAGS[i].commands & c->bit) != 0 &&
		    (group < 0 || find_group(&FLAGS[i]) == (size_t)group)) {
			if (n++ == 0) {
				put_title(out, title);
			}
			put_option(out, &FLAGS[i]);
		}
	}
}

static void put_options(struct buf *out, const struct command *c)
{
	size_t n = 0;

	for (size_t i = 0; i < N_FLAGS; i++) {
		n += (FLAGS[i].commands & c->bit) != 0;
	}
	if (n <= FEW_OPTIONS) {
		list_options(out, c, "options", -1);
		return;
	}
	for (size_t g = 0; g < N_HELP_OPTIONS; g++) {
		list_options(out, c, HELP_OPTIONS[g].title, (int)g);
	}
	list_options(out, c, "more options", (int)N_HELP_OPTIONS);
}

static void put_examples(struct buf *out, const struct command *c)
{
	const struct help_examples *found =
	        ARRAY_FIND(e, HELP_EXAMPLES_OF, N_HELP_EXAMPLES_OF, e->command == c->bit);

	if (found != NULL) {
		put_title(out, "examples");
	}
	for (size_t i = 0; found != NULL && i < HELP_EXAMPLES && found->lines[i] != NULL; i++) {
		buf_addf(out, "  skillsandbox %s\n", found->lines[i]);
	}
}

int cmd_help_command(const struct command *c)
{
	auto_buf out = BUF(SAY_MAX);

	buf_addf(&out, "skillsandbox %s: %s\n\nusage: skillsandbox %s [OPTION...] %s\n", c->name,
	         c->summary, c->name, c->operands);
	put_options(&out, c);
	put_examples(&out, c);
	return print_help(STDOUT_FILENO, &out);
}

int cmd_help(struct request *r)
{
	if (r->operands.n == 0) {
		return cmd_help_usage();
	}
	int n = 0;
	const struct command *c = command_find(r->operands.v, &n);
	if (c == NULL && r->operands.n == 1) {
		int status = cmd_help_group(r->operands.v[0]);
		if (status >= 0) {
			return status;
		}
	}
	if (c == NULL) {
		say_errorf("unknown command '%s'; see 'skillsandbox help'", r->operands.v[0]);
		return EXIT_USAGE;
	}
	return cmd_help_command(c);
}
