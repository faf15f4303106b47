/* run_facts.h - reads the facts that a list of runs shows about one run. If the run has ended, only
 * the first and the last lines of its record are read. Nothing is verified here (see verify.h). */
#ifndef TRACE_RUN_FACTS_H
#define TRACE_RUN_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/classes.h"
#include "trace/runs.h"

enum run_state {
	RUN_LIVE,       /* its supervisor is running */
	RUN_INCOMPLETE, /* its supervisor has ended, and there is no signed end */
	RUN_ENDED,
};

struct run_facts {
	char id[RUN_ID_SIZE];
	char started[32]; /* RFC 3339 */
	char skill[256];
	char version[64];
	enum run_state state;
	char end[24]; /* how the run ended: "exited", "timeout", ...; "" unless RUN_ENDED */
	int64_t exit_code;
	int64_t duration_us;
	int64_t events;
	int64_t violations;
	char session[65]; /* the session of a running run, if the caller knows it; else "" */
	enum class_severity severity;
};

/* Reads the facts of a record. Returns -1 if the file does not begin like a record. */
int run_facts_read(struct run_facts *ret, int fd, const char *id);

/* Returns the directory of the skill that ran (new); NULL: it was not a skill, or the file is not a
 * record. */
char *run_facts_skill_dir(int fd);

const char *run_state_name(enum run_state s);

/* Writes the facts as one JSON object, for programs. */
void run_facts_json(struct json *j, const struct run_facts *f);

#endif
