/* hook_rules.h - what the programs of a line would do, as far as their names tell: tables of POSIX
 * extended regular expressions for the texts of hook_line.h. */
#ifndef CLI_HOOK_RULES_H
#define CLI_HOOK_RULES_H

#include <stdbool.h>

/* Does the simple command, from an exact text, only look, or change files, and start none of those
 * that it is given?
 * `within`: it runs in a skill's directory, where git and Python start more than they are told.
 * `self` is our own executable. */
bool hook_rules_look(const char *command, const char *self, bool within);

/* May a command of the exact text, all of which only look, change files? */
bool hook_rules_change(const char *text);

/* May a command of the text start files that no word names: `python3 $F`, `find -exec`, `xargs`? */
bool hook_rules_start_unnamed(const char *text);

/* Does a command of the text start a text: `sh -c`, `eval`, a shell behind a pipe? */
bool hook_rules_nest(const char *text);

/* Does the line, of which the text has both flat readings, let an agent grant or change what it is
 * held to? `nests`: it starts a text. */
bool hook_rules_decide(const char *text, bool nests);

/* Does the flat text use the name of a skill or (`root`) of a directory of skills as that of a
 * directory? */
bool hook_rules_mention(const char *flat, const char *name, bool root);

bool hook_rules_is_interpreter(const char *word);
bool hook_rules_is_starter(const char *word); /* also `source` */
/* Does the word, behind `before`, stand before a command and change nothing about it: `nohup`,
 * NAME=value, 9 behind `timeout`? */
bool hook_rules_is_wrapper(const char *word, const char *before);
bool hook_rules_is_of_system(const char *program);

#endif
