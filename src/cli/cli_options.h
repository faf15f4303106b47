/* cli_options.h - one option parser for every command, driven by a table.
 *
 * Takes --name, --name=value, --name value, -x, -xvalue, -x value and -xyz.
 * Names are never abbreviated, because a new option could make an abbreviation ambiguous. */
#ifndef CLI_CLI_OPTIONS_H
#define CLI_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "skillsandbox.h"

struct option_row {
	const char *name;  /* written without the dashes */
	char letter;       /* 0: none */
	const char *arg;   /* name of the value in the help text; NULL: the option has no value */
	int id;            /* identifies the option for the handler */
	const char *value; /* the handler's `value` if the option has no value */
	uint64_t commands; /* bits of the commands that accept the option */
	const char *help;
};

/* Called for each option in order. Returns -1 with `err` to stop the parse. */
typedef int option_handler(void *ctx, const struct option_row *row, const char *value,
                           struct ssb_error *err);

struct option_parse {
	const struct option_row *rows;
	size_t n_rows;
	uint64_t command; /* its bit; a row without this bit is an unknown option */
	bool mixed;       /* options may follow operands */
	option_handler *handler;
	void *ctx;
};

struct operands {
	char **v; /* points into argv: borrowed, NULL-terminated */
	int n;
	bool dashes;   /* a "--" came before the first operand */
	char **before; /* the n_before words of the options before the first operand; not set with
	                * `mixed` if an operand came before an option */
	size_t n_before;
};

/* Parses argv (NULL-terminated). Operands between options are moved to its front. Without `mixed`,
 * the first operand and every word after it are operands, because they belong to the skill. */
int cli_options_parse(const struct option_parse *p, char **argv, struct operands *ret,
                      struct ssb_error *err);

#endif
