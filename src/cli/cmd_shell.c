/* cmd_shell.c - opens an interactive shell in a sandbox: `run` with a shell as the program. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "cli/cli.h"
#include "cli/say.h"
#include "policy/options.h"
#include "policy/path.h"

/* The shells that may be used, with words that make them interactive but keep them from reading
 * your settings. The settings could replace the prompt, which must show that this is a sandbox. */
static const struct shell {
	const char *name; /* the last part of SHELL */
	char *words[6];
	const char *prompt; /* what follows the name of the sandbox */
} SHELLS[] = {
	{ "bash", { "/usr/bin/bash", "--norc", "--noprofile", "-i" }, " \\w\\$ " },
	{ "zsh", { "/usr/bin/zsh", "-f", "-i" }, " %~%# " },
	{ "fish",
	  { "/usr/bin/fish", "--no-config", "-i", "-C",
	    "function fish_prompt; printf '%s%s> ' $PS1 (prompt_pwd); end" },
	  " " },
	{ "dash", { "/usr/bin/dash", "-i" }, " $ " },
	{ "sh", { "/bin/sh", "-i" }, " $ " }, /* the last row: if no other fits */
};

static const struct shell *find_shell(const struct request *r)
{
	const char *own = getenv("SHELL");
	const char *name = own != NULL ? path_base(own) : "";
	size_t last = ARRAY_LEN(SHELLS) - 1;

	for (size_t i = 0; i < last && r->options->rootfs == NULL && !request_has(r, FLAG_IMAGE);
	     i++) {
		if (strcmp(SHELLS[i].name, name) == 0 && access(SHELLS[i].words[0], X_OK) == 0) {
			return &SHELLS[i];
		}
	}
	return &SHELLS[last];
}

/* Sets the prompt. Shells expand some characters in it, so an unusual name is left out. */
static int set_prompt(struct request *r, const struct shell *s, struct ssb_error *err)
{
	static const char PLAIN[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	                            "0123456789._-";
	auto_free char *real = r->operands.n > 0 ? realpath(r->operands.v[0], NULL) : NULL;
	const char *name = real != NULL ? path_base(real) : "";
	char value[128];

	name = name[strspn(name, PLAIN)] == '\0' && strlen(name) < 64 ? name : "";
	snprintf(value, sizeof(value), "PS1=[sandbox%s%s]%s", name[0] != '\0' ? " " : "", name,
	         s->prompt);
	return ssb_options_set(r->options, SSB_OPT_ENV, value, err);
}

int cmd_shell(struct request *r)
{
	struct ssb_error err = { 0 };

	if (r->operands.n > 1 || r->operands.dashes) {
		return say_fail(EXIT_USAGE,
		                "shell takes one DIR at most; to run a command: skillsandbox run");
	}
	if (isatty(STDIN_FILENO) != 1 || isatty(STDOUT_FILENO) != 1) {
		return say_fail(EXIT_USAGE, "shell needs a terminal as its input and output; "
		                            "without one, run a command: skillsandbox run -- sh "
		                            "-c 'ls'");
	}
	const struct shell *s = find_shell(r);
	r->options->shell = s->words;
	if (set_prompt(r, s, &err) != 0) {
		return exit_status_told(&err);
	}
	return cmd_run_program(r, s->words);
}
