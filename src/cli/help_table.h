/* help_table.h - how the help is arranged: groups of commands and options, and examples. */
#ifndef CLI_HELP_TABLE_H
#define CLI_HELP_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HELP_EXAMPLES 3

/* A group of commands. A command that is in no group is listed last. */
struct help_commands {
	const char *title;
	uint64_t commands; /* bits of enum command_bit */
};

/* A group of options, by their names. An option that is in no group is listed last. */
struct help_options {
	const char *title;
	const char *names; /* separated by spaces, with one before the first and after the last */
};

/* The examples of a command, each without the word "skillsandbox". */
struct help_examples {
	uint64_t command;
	const char *lines[HELP_EXAMPLES];
};

extern const struct help_commands HELP_COMMANDS[];
extern const size_t N_HELP_COMMANDS;
extern const struct help_options HELP_OPTIONS[];
extern const size_t N_HELP_OPTIONS;
extern const struct help_examples HELP_EXAMPLES_OF[];
extern const size_t N_HELP_EXAMPLES_OF;

#endif
