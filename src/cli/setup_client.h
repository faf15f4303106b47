/* setup_client.h - the agents that `setup` knows, and their commands for MCP servers. */
#ifndef CLI_SETUP_CLIENT_H
#define CLI_SETUP_CLIENT_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/limits.h"
#include "base/string_list.h"
#include "cli/setup_file.h"
#include "skillsandbox.h"

#define SETUP_SERVER    "skillsandbox" /* name of the entry for this program */
#define SETUP_SECONDS   120
#define SETUP_MAX_WORDS (2 * MAX_SERVED + MAX_PASSED + 16) /* most words of one command */

enum setup_step {
	SETUP_LIST, /* prints the servers as JSON; a client without it: its file is read */
	/* Followed by the words that start the server. If a client lacks this command or the next
	 * one, its file is edited here. */
	SETUP_ADD,
	SETUP_REMOVE,
	N_SETUP_STEPS
};

/* The form of the entry in a file that is edited here. */
enum setup_form {
	SETUP_FORM_ARGS,    /* {"command": PROGRAM, "args": [...]} */
	SETUP_FORM_STDIO,   /* the same with "type": "stdio" */
	SETUP_FORM_COMMAND, /* {"type": "local", "command": [PROGRAM, ...], "enabled": true} */
	SETUP_FORM_CMD,     /* {"cmd": PROGRAM, "args": [...], ...} */
};

struct setup_client {
	const char *name;
	const char *program;
	const char *commands[N_SETUP_STEPS][7];
	bool replaces;  /* true: SETUP_ADD replaces an entry; false: it fails if there is one */
	bool adds_json; /* SETUP_ADD takes {"command": PROGRAM, "args": [...]}, not words */
	enum setup_form form;
	struct setup_place place;
	struct setup_place hook; /* the file with the client's hooks; `file` is NULL: it has none */
	const char *path[4]; /* names on the way to the entry in `file` or in SETUP_LIST's output */
	const char *skills;  /* directory of the client's own skills, beneath the home */
};

/* Finds a client by its name, or by the name of its program. Returns NULL if there is none. */
const struct setup_client *setup_client_find(const char *name);
void setup_client_names(struct buf *out);             /* appends the names, separated by ", " */
const struct setup_client *setup_client_at(size_t i); /* NULL: past the last one */
bool setup_client_has(const struct setup_client *c, enum setup_step step);

/* Returns the path of the client's program, new. NULL: no absolute directory of PATH has it. */
char *setup_client_program(const struct setup_client *c);

/* Fills `ret` with the words of a command. `server` has the words that start the server. */
int setup_client_command(const struct setup_client *c, enum setup_step step, bool project,
                         const struct string_list *server, struct string_list *ret,
                         struct ssb_error *err);

/* Runs a command to its end, without a shell. Its standard input is empty, so it cannot ask. A
 * command for a project runs in the working directory. Any other command runs in "/", because
 * a client may read, and even run, files of its working directory. A command that takes longer
 * than SETUP_SECONDS is killed. Its output is appended to `out`; if `out` is NULL, it goes to
 * the standard output of this program. */
int setup_client_run(const char *program, const struct string_list *command, bool project,
                     struct buf *out, struct ssb_error *err);

#endif
