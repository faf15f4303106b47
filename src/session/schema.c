/* schema.c - the statements that make the tables. */
#include "session/schema.h"

#include <stddef.h>

/* SQLite numbers an INTEGER PRIMARY KEY automatically, PostgreSQL does not, so each driver replaces
 * the word SERIAL. WITHOUT ROWID is for SQLite: a new row then changes one page, instead of a page
 * of the table and a page of its key's index. */
const char *const SESSION_SCHEMA[] = {
	"CREATE TABLE sessions (n SERIAL, id TEXT NOT NULL UNIQUE, parent BIGINT NOT NULL,"
	" root BIGINT NOT NULL, depth BIGINT NOT NULL, agent TEXT NOT NULL, policy TEXT NOT NULL,"
	" state BIGINT NOT NULL, alerted BIGINT NOT NULL, paused_by BIGINT NOT NULL DEFAULT 0,"
	" reason TEXT NOT NULL, created BIGINT NOT NULL, deadline BIGINT NOT NULL DEFAULT 0,"
	" ended BIGINT NOT NULL, spent BIGINT NOT NULL,"
	" reserved BIGINT NOT NULL, actions BIGINT NOT NULL, violations BIGINT NOT NULL,"
	" runs BIGINT NOT NULL, cpu_ms BIGINT NOT NULL, wall_ms BIGINT NOT NULL,"
	" bytes_out BIGINT NOT NULL, bytes_in BIGINT NOT NULL, connections BIGINT NOT NULL,"
	" domains BIGINT NOT NULL, seq BIGINT NOT NULL, mono BIGINT NOT NULL DEFAULT 0,"
	" hash TEXT NOT NULL, refused BIGINT NOT NULL DEFAULT 0,"
	" blocked TEXT NOT NULL DEFAULT '', due BIGINT NOT NULL DEFAULT 0)",
	"CREATE INDEX sessions_parent ON sessions (parent)",
	"CREATE INDEX sessions_live ON sessions (deadline) WHERE ended = 0",
	"CREATE INDEX sessions_due ON sessions (due) WHERE due > 0",
	"CREATE TABLE policies (digest TEXT NOT NULL PRIMARY KEY, source TEXT NOT NULL)",
	"CREATE TABLE counts (session BIGINT NOT NULL, name TEXT NOT NULL, n BIGINT NOT NULL,"
	" PRIMARY KEY (session, name)) WITHOUT ROWID",
	"CREATE TABLE domains (session BIGINT NOT NULL, name TEXT NOT NULL,"
	" PRIMARY KEY (session, name)) WITHOUT ROWID",
	"CREATE TABLE reservations (n SERIAL, session BIGINT NOT NULL, root BIGINT NOT NULL,"
	" action TEXT NOT NULL, amount BIGINT NOT NULL, made BIGINT NOT NULL, expires BIGINT NOT "
	"NULL,"
	" state BIGINT NOT NULL)",
	"CREATE TABLE runs (n SERIAL, session BIGINT NOT NULL, run_id TEXT NOT NULL,"
	" host TEXT NOT NULL, boot TEXT NOT NULL, keeper BIGINT NOT NULL, socket TEXT NOT NULL,"
	" init BIGINT NOT NULL, init_start BIGINT NOT NULL, begun BIGINT NOT NULL,"
	" ended BIGINT NOT NULL, exit_status BIGINT NOT NULL, ending TEXT NOT NULL,"
	" used BIGINT NOT NULL DEFAULT 0)",
	"CREATE INDEX runs_live ON runs (session) WHERE ended = 0",
	"CREATE TABLE ledger (n SERIAL, line TEXT NOT NULL)",
	"CREATE TABLE copies (session BIGINT NOT NULL, item BIGINT NOT NULL, seq BIGINT NOT NULL,"
	" PRIMARY KEY (session, item)) WITHOUT ROWID",
	"CREATE TABLE outbox (n SERIAL, session BIGINT NOT NULL, kind BIGINT NOT NULL,"
	" url TEXT NOT NULL, secret TEXT NOT NULL, body TEXT NOT NULL, tries BIGINT NOT NULL,"
	" due BIGINT NOT NULL, leased BIGINT NOT NULL, state BIGINT NOT NULL)",
	"CREATE INDEX outbox_due ON outbox (due) WHERE state = 0",
	"CREATE TABLE sends (n SERIAL, session BIGINT NOT NULL, url TEXT NOT NULL,"
	" sent BIGINT NOT NULL, span BIGINT NOT NULL, tries BIGINT NOT NULL, due BIGINT NOT NULL,"
	" leased BIGINT NOT NULL, state BIGINT NOT NULL)",
	"CREATE INDEX sends_open ON sends (session) WHERE state = 0",
	"CREATE INDEX sends_session ON sends (session)",
	NULL,
};
