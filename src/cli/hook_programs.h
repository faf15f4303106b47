/* hook_programs.h - what the program of a simple command would do with what it is
 * given, as far as its name tells. The known ones stand in tables; every other one may
 * do anything. */
#ifndef CLI_HOOK_PROGRAMS_H
#define CLI_HOOK_PROGRAMS_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/shell_words.h"

/* One of `v`, which are patterns of fnmatch(3). */
bool hook_program_among(const char *name, const char *const v[], size_t n);

/* Which word is the program: behind keywords, variables that are set, and `sudo`, `nice -n 3`
 * and the like with their options. `plain`: only behind `nohup`, `timeout 9` and others that
 * change nothing about what they start. */
size_t hook_program_word(const struct shell_command *c, bool plain);

/* Starts what it is given. */
bool hook_program_interprets(const char *word);

/* The interpreter that is word `at` only compiles or checks: python3 -m py_compile. */
bool hook_program_checks(const struct shell_command *c, size_t at);

/* Only looks, or changes files without starting any; also `skillsandbox run` (`self`
 * is our executable), unless it has an option with which the owner grants more. */
bool hook_program_looks(const struct shell_command *c, const char *self);

/* Starts a command of ours that is for the owner to give, whatever stands before it: with it
 * an agent would grant or change what it is held to. */
bool hook_program_decides(const struct shell_command *c, const char *self);

#endif
