/* session_world.h - a store of sessions for tests, with a clock that the test sets. The store is a
 * new SQLite file, or the PostgreSQL server that SSB_TEST_POSTGRES names. Each test uses new
 * session ids. */
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

/* The world of the current test. */
extern struct world w;
extern int64_t world_now; /* the time that the store sees; 0: the real time */

void world_open(const char *postgres); /* NULL: SQLite */
void world_reopen(void);
void world_close(void);
/* Returns the id of a session in this world. The string is valid until the eighth call after this
 * one. */
const char *world_id(const char *name);

/* Starts the world's session `name`. `yaml` must be a valid policy. */
struct decision world_start(const char *name, const char *parent, const char *yaml);
struct decision world_check(const char *name, micros estimate);
struct decision world_settle(int64_t reservation, micros actual);
/* Changes the state of the session; fails the test if that is not possible. */
void world_become(const char *name, enum session_state to, const char *reason);
struct session world_get(const char *name);
/* Returns all lines of the ledger, new. */
char *world_ledger(const char *name);
/* Returns the number of lines of this kind in the ledger. */
size_t world_lines(const char *name, const char *kind);
/* Verifies the text of a ledger, with the key of this world if there is one. */
struct verify_result world_verify(const char *text, size_t len);

#endif
