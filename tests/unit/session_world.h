/* session_world.h - a store of sessions for tests, with a clock that the test sets. SQLite in a
 * directory of its own; PostgreSQL if SSB_TEST_POSTGRES names a server. Tests run on both, with ids
 * that no other run of them has. */
#ifndef TESTS_SESSION_WORLD_H
#define TESTS_SESSION_WORLD_H

#include "trace/verify.h"
#include "session/store.h"

struct world {
	char dir[64];
	char state_dir[96];
	char config_dir[96];
	struct owner owner;
	struct session_store *ss;
	char prefix[24];
};

#define SECOND INT64_C(1000000)

/* The world of the test. */
extern struct world w;
extern int64_t world_now; /* what time it is; 0: the real one */

void world_open(const char *postgres); /* NULL: SQLite */
void world_reopen(void);
void world_close(void);
/* An id of this world. Of the last 8 that were asked for. */
const char *world_id(const char *name);

/* `yaml` must be a good policy. The session is the world's `name`. */
struct decision world_start(const char *name, const char *parent, const char *yaml);
struct decision world_check(const char *name, micros estimate);
struct decision world_settle(int64_t reservation, micros actual);
/* It must be possible. */
void world_become(const char *name, enum session_state to, const char *reason);
struct session world_get(const char *name);
/* All lines of the ledger; free it. */
char *world_ledger(const char *name);
/* Lines of this kind in the ledger. */
size_t world_lines(const char *name, const char *kind);
/* Of a ledger's text, with this world's key if there is one. */
struct verify_result world_verify(const char *text, size_t len);

#endif
