/* setup_client.h - the agents that `setup` knows, and their commands for MCP servers. */
#ifndef CLI_SETUP_CLIENT_H
#define CLI_SETUP_CLIENT_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/limits.h"
#include "base/string_list.h"
#include "skillsandbox.h"

#define SETUP_SERVER    "skillsandbox" /* name of our server */
#define SETUP_SECONDS   120
#define SETUP_MAX_WORDS (2 * MAX_SERVED + 16) /* most words of one command */

enum setup_step {
	SETUP_LIST,   /* prints the servers as JSON; if a client lacks it, its file is read */
	SETUP_ADD,    /* the words that start our server follow */
	SETUP_REMOVE, /* if a client lacks it, and in its projects, the file is edited here */
	N_SETUP_STEPS
};

struct setup_client {
	const char *name;
	const char *program;
	const char *commands[N_SETUP_STEPS][7];
	bool replaces;        /* SETUP_ADD replaces an entry; otherwise it fails if there is one */
	bool adds_json;       /* SETUP_ADD takes {"command": PROGRAM, "args": [...]}, not words */
	const char *variable; /* environment variable that names the directory of `file` */
	/* Directory of `file` beneath the home, if that variable is not set. */
	const char *otherwise;
	const char *file;
	bool jsonc;          /* a file with "c" after this name is used instead, if there is one */
	const char *project; /* the file in a project; NULL: projects have none */
	const char *path[4]; /* names that lead to our server in `file` or SETUP_LIST's output */
	const char *skills;  /* directory of the client's own skills, beneath the home */
};

const struct setup_client *setup_client_find(const char *name); /* NULL: not known */
bool setup_client_has(const struct setup_client *c, enum setup_step step);

/* Returns the path of the client's program, new. NULL: no absolute directory of PATH has it. */
char *setup_client_program(const struct setup_client *c);

/* Fills `ret` with the words of a command. `server`: the words that start our server. */
int setup_client_command(const struct setup_client *c, enum setup_step step, bool project,
                         const struct string_list *server, struct string_list *ret,
                         struct ssb_error *err);

/* Runs a command to its end, without a shell. The program finds its standard input empty, so it
 * cannot ask. Unless it is for a project, it works in "/": it may read, and even run, files of the
 * working directory. It is killed if it takes longer than SETUP_SECONDS. Its output is appended to
 * `out`; if that is NULL, it appears on ours. */
int setup_client_run(const char *program, const struct string_list *command, bool project,
                     struct buf *out, struct ssb_error *err);

#endif
