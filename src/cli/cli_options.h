/* cli_options.h - one option parser for every command, driven by a table.
 *
 * Takes --name, --name=value, --name value, -x, -xvalue, -x value and -xyz.
 * Names are never abbreviated: what works today must not become ambiguous. */
#ifndef CLI_CLI_OPTIONS_H
#define CLI_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "skillsandbox.h"

struct option_row {
	const char *name;  /* without the dashes */
	char letter;       /* 0: none */
	const char *arg;   /* how help names the value; NULL: takes none */
	int id;            /* what it means to the handler */
	const char *value; /* the value of an option that takes none */
	uint64_t commands; /* bits of the commands that know it */
	const char *help;
};

/* Called for each option in order; -1 with err stops the parse. */
typedef int option_handler(void *ctx, const struct option_row *row, const char *value,
                           struct ssb_error *err);

struct option_parse {
	const struct option_row *rows;
	size_t n_rows;
	uint64_t command; /* only rows with this bit exist */
	bool mixed;       /* options may follow operands */
	option_handler *handler;
	void *ctx;
};

struct operands {
	char **v; /* into argv: borrowed, NULL-terminated */
	int n;
	bool dashes; /* a "--" stood before the first of them */
};

/* Parses argv (NULL-terminated; the operands are moved to its front). Without
 * `mixed` everything from the first operand on belongs to the skill. */
int cli_options_parse(const struct option_parse *p, char **argv, struct operands *ret,
                      struct ssb_error *err);

#endif
