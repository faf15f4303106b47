/* hook_programs.h - what the program of a simple command would do with its words, as far as its
 * name tells. A program that is not in the tables may do anything. */
#ifndef CLI_HOOK_PROGRAMS_H
#define CLI_HOOK_PROGRAMS_H

#include "cli/hook_line.h"

/* Does `name` match one of the patterns of fnmatch(3) in `list`, which blanks separate? */
bool hook_programs_list(const char *list, const char *name);

/* Which word is the program: behind assignments, keywords, and `exec`, `nohup`, `timeout 9` and the
 * like without options. n_words: none. */
size_t hook_programs_word(const struct hook_command *c);

/* Which word is the first interpreter: it starts a file or a text, and does not only check it as
 * python3 -m py_compile does. n_words: none. */
size_t hook_programs_interpreter(const struct hook_command *c);

/* Does it start its program in a way that is not followed: `sudo`, `nice -n 3`, `if`? */
bool hook_programs_odd(const struct hook_command *c);

/* Does it start a text: `sh -c`, `eval`, a shell that reads one? */
bool hook_programs_nest(const struct hook_command *c);

/* Does the command only look, or change files without starting any? `skillsandbox run` without a
 * grant counts, too. `self` is our executable. */
bool hook_programs_look(const struct hook_command *c, const char *self);

/* May the command start files that its words do not name: `python3 $F`, `find -exec`, `xargs`? */
bool hook_programs_start_unnamed(const struct hook_command *c, const char *self);

/* Is it an interpreter that reads its script from standard input: `bash`, `python3 -`? */
bool hook_programs_reads_script(const struct hook_command *c);

/* Does the command start only its own program, with its own words, and change nothing for the
 * commands behind it? */
bool hook_programs_understand(const struct hook_command *c, const char *self);

/* Does what the command does depend on files of its directory that it does not name? Only valid for
 * commands that look. */
bool hook_programs_depend(const struct hook_command *c);

/* Is it a command of ours that only the owner may give? With it an agent would grant or change
 * what it is held to. */
bool hook_programs_decide(const struct hook_command *c, const char *self);

#endif
