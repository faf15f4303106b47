/* cmd_help.c - prints help and --version, from the tables of commands and options. */
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/say.h"

int cmd_help_version(void)
{
	auto_buf out = BUF(SAY_MAX);

	buf_adds(&out, "skillsandbox " SSB_VERSION "\n");
	return say_out(STDOUT_FILENO, &out);
}

/* Lists the commands whose first word is `first`, or every command if `first` is NULL. Returns
 * their number. */
static size_t list_commands(struct buf *out, const char *first)
{
	size_t len = first != NULL ? strlen(first) : 0;
	size_t n = 0;

	for (size_t i = 0; i < N_COMMANDS; i++) {
		const char *name = COMMANDS[i].name;
		if (first == NULL || (strncmp(name, first, len) == 0 && name[len] == ' ')) {
			buf_addf(out, "  %-17s %s\n", name, COMMANDS[i].summary);
			n++;
		}
	}
	return n;
}

int cmd_help_group(const char *first)
{
	auto_buf out = BUF(SAY_MAX);

	buf_addf(&out, "usage: skillsandbox %s COMMAND [OPTION...] ...\n\n", first);
	return list_commands(&out, first) > 0 ? say_out(STDOUT_FILENO, &out) : -1;
}

int cmd_help_usage(void)
{
	auto_buf out = BUF(SAY_MAX);

	buf_adds(&out, "Runs an AI agent's skill with only what it declares and you grant.\n\n"
	               "usage: skillsandbox COMMAND [OPTION...] ...\n\n");
	(void)list_commands(&out, NULL);
	buf_adds(&out, "\n'skillsandbox help COMMAND' explains a command; "
	               "skillsandbox(1) is the manual.\n");
	return say_out(STDOUT_FILENO, &out);
}

int cmd_help_command(const struct command *c)
{
	auto_buf out = BUF(SAY_MAX);

	buf_addf(&out, "skillsandbox %s: %s\n\nusage: skillsandbox %s [OPTION...] %s\n\n", c->name,
	         c->summary, c->name, c->operands);
	for (size_t i = 0; i < N_FLAGS; i++) {
		const struct option_row *row = &FLAGS[i];
		char left[64];
		if ((row->commands & c->bit) == 0) {
			continue;
		}
		snprintf(left, sizeof(left), "%c%c%s--%s%s%s", row->letter != 0 ? '-' : ' ',
		         row->letter != 0 ? row->letter : ' ', row->letter != 0 ? ", " : "  ",
		         row->name, row->arg != NULL && row->arg[0] != '[' ? " " : "",
		         row->arg != NULL ? row->arg : "");
		buf_addf(&out, "  %-27s %s\n", left, row->help);
	}
	return say_out(STDOUT_FILENO, &out);
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
