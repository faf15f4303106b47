/* db_postgres.c - the store for several machines.
 *
 * On the server, the name of a prepared statement is its index in the cache. Each new connection
 * prepares it again. A lost connection is made again only between transactions, because a
 * transaction is lost with its connection. If the connection breaks during a commit, the server
 * is asked afterwards whether the commit happened.
 *
 * News arrive on the same connection. libpq may read them together with the answer to a query,
 * and then the socket is not readable. So the fd to poll is an epoll fd of the socket and of
 * `event`, an eventfd that look_for_news() makes readable. */
#include "session/db_postgres.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "os/clock.h"

#define CHANNEL "skillsandbox"
/* An advisory lock has two numbers. This is the first one: what is locked. */
#define LOCK_TREE   0x53534274
#define LOCK_SCHEMA 0x53534273
#define RESOLVE_MS  10000 /* how long to ask whether a commit happened */

struct pg_db {
	struct db db;
	struct pg_link link;
	uint64_t known; /* link.made of the connection that the fields below are for */
	struct db_cache cache;
	bool prepared[DB_STATEMENTS];
	char xid[24];      /* id of the transaction; "": it has no advisory lock yet */
	int64_t locked_us; /* when it got the lock, by the server's clock; 0: no lock yet */
	int epoll;         /* -1: not listening */
	int event;
	struct pg_notify *next; /* news that db_news() has not returned yet */
	bool missed;            /* news may be lost: a connection was lost while listening */
};

/* `db` is the first member of struct pg_db, so both have the same address. */
static struct pg_db *pg_of(struct db *db)
{
	return (struct pg_db *)(void *)db;
}

/* ---- news --------------------------------------------------------------- */

/* Keeps the next message of another process, if one has arrived. */
static void look_for_news(struct pg_db *s)
{
	const struct pq *pq = s->link.pq;
	uint64_t one = 1;

	while (s->epoll >= 0 && s->link.conn != NULL && s->next == NULL) {
		struct pg_notify *n = pq->notifies(s->link.conn);
		if (n == NULL) {
			break;
		}
		if (n->backend == pq->backendPID(s->link.conn) ||
		    strlen(n->payload) >= SESSION_ID || n->payload[0] == '\0') {
			pq->freemem(n);
			continue;
		}
		s->next = n;
	}
	if (s->next != NULL || s->missed) {
		(void)!write(s->event, &one, sizeof(one));
	}
}

static int listen_here(struct pg_db *s, struct ssb_error *err)
{
	struct epoll_event e = { .events = EPOLLIN };

	if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->link.pq->socket(s->link.conn), &e) < 0 &&
	    errno != EEXIST) {
		return ssb_fail(err, SSB_E_SYS, errno, DB_WHERE, "listen for news");
	}
	return pg_link_exec(&s->link, "LISTEN " CHANNEL, err);
}

static int postgres_ready(struct pg_db *s, struct ssb_error *err)
{
	if (pg_link_ready(&s->link, err) != 0) {
		return -1;
	}
	if (s->known == s->link.made) {
		return 0;
	}
	memset(s->prepared, 0, sizeof(s->prepared));
	if (s->epoll >= 0) {
		s->missed = true;
		if (listen_here(s, err) != 0) {
			return -1;
		}
		look_for_news(s);
	}
	s->known = s->link.made;
	return 0;
}

/* A transaction is lost with its connection, so it is not continued on a new one. */
static int check_connected(const struct pg_db *s, struct ssb_error *err)
{
	return s->link.conn != NULL
	               ? 0
	               : ssb_fail(err, SSB_E_SYS, ECONNRESET, DB_WHERE,
	                          "the connection to PostgreSQL was lost, so nothing of the "
	                          "transaction was stored; try again");
}

static int postgres_news_fd(struct db *db)
{
	struct pg_db *s = pg_of(db);
	struct epoll_event e = { .events = EPOLLIN };

	if (s->epoll >= 0) {
		return s->epoll;
	}
	/* Within a transaction LISTEN takes effect only at its commit. */
	if (db->begun || postgres_ready(s, NULL) != 0) {
		return -1;
	}
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	s->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->epoll < 0 || s->event < 0 || epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->event, &e) < 0 ||
	    listen_here(s, NULL) != 0) {
		own_close(&s->epoll);
		own_close(&s->event);
	}
	return s->epoll;
}

static int postgres_news(struct db *db, char ret_session[SESSION_ID], struct ssb_error *err)
{
	struct pg_db *s = pg_of(db);
	uint64_t count = 0;

	if (s->epoll < 0) {
		return 0;
	}
	(void)!read(s->event, &count, sizeof(count));
	if (s->missed) {
		s->missed = false;
		ret_session[0] = '\0';
		look_for_news(s);
		return 1;
	}
	if (s->next == NULL && pg_link_heard(&s->link, err) != 0) {
		return -1;
	}
	look_for_news(s);
	if (s->next == NULL) {
		return 0;
	}
	snprintf(ret_session, SESSION_ID, "%s", s->next->payload);
	s->link.pq->freemem(s->next);
	s->next = NULL;
	look_for_news(s);
	return 1;
}

/* ---- statements --------------------------------------------------------- */

static int prepare_statement(struct pg_db *s, int place, const char *sql, const struct pg_params *p,
                             size_t n, struct ssb_error *err)
{
	struct pg_result *r = NULL;
	char name[16];

	if (s->prepared[place]) {
		return 0;
	}
	snprintf(name, sizeof(name), "s%d", place);
	int sent = s->link.pq->sendPrepare(s->link.conn, name, sql, (int)n, p->types);
	if (pg_link_answer(&s->link, sent, &r, err) != 0) {
		return -1;
	}
	s->link.pq->clear(r);
	s->prepared[place] = true;
	return 0;
}

static int ask_server(struct pg_db *s, const char *sql, const struct db_value *args, size_t n,
                      struct pg_result **ret, struct ssb_error *err)
{
	const struct pq *pq = s->link.pq;
	int place = db_cache_place(&s->cache, sql);
	struct pg_params p;
	char name[16];
	int sent = 0;

	pg_params_fill(&p, args, n);
	if (place >= 0 && prepare_statement(s, place, sql, &p, n, err) != 0) {
		return -1;
	}
	if (place >= 0) {
		snprintf(name, sizeof(name), "s%d", place);
		sent = pq->sendQueryPrepared(s->link.conn, name, (int)n, p.values, p.lengths,
		                             p.formats, 0);
	} else {
		sent = pq->sendQueryParams(s->link.conn, sql, (int)n, p.types, p.values, p.lengths,
		                           p.formats, 0);
	}
	return pg_link_answer(&s->link, sent, ret, err);
}

static int postgres_run(struct db *db, const char *sql, const struct db_value *args, size_t n_args,
                        db_row_fn *row, void *arg, struct ssb_error *err)
{
	struct pg_db *s = pg_of(db);
	const struct pq *pq = s->link.pq;
	struct pg_result *r = NULL;

	if ((!db->begun && postgres_ready(s, err) != 0) || check_connected(s, err) != 0) {
		return -1;
	}
	if (ask_server(s, sql, args, n_args, &r, err) != 0) {
		return -1;
	}
	int64_t changes = db_postgres_changes(pq, r);
	look_for_news(s);
	int rc = row != NULL ? db_postgres_rows(pq, r, row, arg, err) : 0;
	pq->clear(r);
	db->changes = changes; /* set after the rows, because `row` may run statements itself */
	return rc;
}

static int postgres_exec(struct db *db, const char *sql, struct ssb_error *err)
{
	struct pg_db *s = pg_of(db);

	if ((!db->begun && postgres_ready(s, err) != 0) || check_connected(s, err) != 0) {
		return -1;
	}
	return pg_link_exec(&s->link, sql, err);
}

/* ---- transactions ------------------------------------------------------- */

/* Tries twice: BEGIN may be the first statement that notices a lost connection. No change can be
 * lost yet. */
static int postgres_begin(struct db *db, struct ssb_error *err)
{
	static const char sql[] = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";
	struct pg_db *s = pg_of(db);
	struct ssb_error first = { 0 };

	s->xid[0] = '\0';
	s->locked_us = 0;
	if (postgres_ready(s, err) != 0) {
		return -1;
	}
	if (pg_link_exec(&s->link, sql, &first) == 0) {
		return 0;
	}
	if (s->link.conn != NULL) {
		if (err != NULL) {
			*err = first;
		}
		return -1;
	}
	return postgres_ready(s, err) != 0 ? -1 : pg_link_exec(&s->link, sql, err);
}

static void postgres_rollback(struct db *db)
{
	struct pg_db *s = pg_of(db);

	if (s->link.conn != NULL) {
		(void)pg_link_exec(&s->link, "ROLLBACK", NULL);
		look_for_news(s);
	}
}

static int take_text(void *arg, const struct db_value *v, size_t n)
{
	char *out = arg;

	if (n > 0 && v[0].type == DB_TEXT && v[0].n < sizeof(((struct pg_db *)0)->xid)) {
		memcpy(out, v[0].s, v[0].n + 1);
	}
	return 1;
}

/* Finds out what happened to a commit if the connection broke before its answer. Returns 1 if the
 * commit happened, 0 if it did not, -1 if this is unknown. */
static int what_came_of_it(struct pg_db *s)
{
	uint64_t until = clock_ms() + RESOLVE_MS;
	char xid[sizeof(s->xid)];

	memcpy(xid, s->xid, sizeof(xid));
	while (xid[0] != '\0' && clock_ms() < until) {
		char state[sizeof(s->xid)] = "";
		if (postgres_run(&s->db, "SELECT pg_xact_status(CAST($1 AS xid8))",
		                 DB_ARGS(DB_T(xid)), take_text, state, NULL) == 0) {
			if (strcmp(state, "in progress") != 0) {
				return strcmp(state, "committed") == 0 ? 1
				       : strcmp(state, "aborted") == 0 ? 0
				                                       : -1;
			}
		}
		(void)nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
	}
	return -1;
}

static int postgres_commit(struct db *db, struct ssb_error *err)
{
	struct pg_db *s = pg_of(db);
	struct pg_result *r = NULL;
	struct ssb_error why = { 0 };

	if (check_connected(s, err) != 0) {
		return -1;
	}
	if (pg_link_answer(&s->link, s->link.pq->sendQuery(s->link.conn, "COMMIT"), &r, &why) ==
	    0) {
		/* If the server turned the COMMIT into a rollback, it reports no error, but
		 * another command status. */
		bool done = strcmp(s->link.pq->cmdStatus(r), "COMMIT") == 0;
		s->link.pq->clear(r);
		look_for_news(s);
		return done ? 0
		            : ssb_fail(err, SSB_E_SYS, 0, DB_WHERE, "the transaction was undone");
	}
	int known = s->link.conn != NULL ? 0 : what_came_of_it(s);
	if (known == 1) {
		return 0;
	}
	postgres_rollback(db);
	if (err != NULL) {
		*err = why;
	}
	return known == 0 ? -1 : ssb_wrap(err, "it is not known whether the change was made");
}

#define SERVER_US "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS bigint)"

static int take_lock(void *arg, const struct db_value *v, size_t n)
{
	struct pg_db *s = arg;

	if (n == 3 && v[2].type == DB_INT) {
		s->locked_us = v[2].i;
	}
	return take_text(s->xid, v, n);
}

/* The lock has two numbers, so that it does not collide with locks of other programs in this
 * database. The time is read outside of the subquery that waits for the lock, so it is the time
 * after the wait. */
static int advisory_lock(struct pg_db *s, int64_t family, int64_t number, struct ssb_error *err)
{
	return postgres_run(&s->db,
	                    "SELECT CAST(pg_current_xact_id() AS text), l.held, " SERVER_US
	                    " FROM (SELECT CAST(pg_advisory_xact_lock(CAST($1 AS int4),"
	                    " CAST($2 AS int4)) AS text) AS held OFFSET 0) l",
	                    DB_ARGS(DB_I(family), DB_I(number)), take_lock, s, err);
}

static int postgres_lock(struct db *db, int64_t root, struct ssb_error *err)
{
	return advisory_lock(pg_of(db), LOCK_TREE, root & INT32_MAX, err);
}

static int postgres_lock_schema(struct db *db, struct ssb_error *err)
{
	return advisory_lock(pg_of(db), LOCK_SCHEMA, 0, err);
}

static int postgres_tell(struct db *db, const char *session, struct ssb_error *err)
{
	return db_run(db, "SELECT pg_notify('" CHANNEL "', $1)", DB_ARGS(DB_T(session)), NULL, NULL,
	              err);
}

/* ---- version ------------------------------------------------------------ */

static int postgres_time(struct db *db, int64_t *ret, struct ssb_error *err)
{
	struct pg_db *s = pg_of(db);

	if (db->begun && s->locked_us != 0) {
		*ret = s->locked_us;
		return 0;
	}
	return postgres_run(db, "SELECT " SERVER_US, NULL, 0, db_take_number, ret, err);
}

/* Does not use to_regclass(): after the wait for the lock it may still answer from its
 * cache that there is no such table. */
static int postgres_version(struct db *db, int64_t *ret, struct ssb_error *err)
{
	int64_t exists = 0;
	int64_t version = 0;

	if (postgres_run(db,
	                 "SELECT count(*) FROM pg_catalog.pg_tables WHERE tablename ="
	                 " 'schema_version' AND schemaname = current_schema()",
	                 NULL, 0, db_take_number, &exists, err) != 0) {
		return -1;
	}
	if (exists != 0 &&
	    postgres_run(db, "SELECT version FROM schema_version WHERE application = '" CHANNEL "'",
	                 NULL, 0, db_take_number, &version, err) != 0) {
		return -1;
	}
	*ret = version;
	return 0;
}

static int postgres_set_version(struct db *db, int64_t version, struct ssb_error *err)
{
	if (postgres_exec(db,
	                  "CREATE TABLE schema_version (application TEXT PRIMARY KEY,"
	                  " version BIGINT NOT NULL)",
	                  err) != 0) {
		return -1;
	}
	return postgres_run(db, "INSERT INTO schema_version VALUES ('" CHANNEL "', $1)",
	                    DB_ARGS(DB_I(version)), NULL, NULL, err);
}

static void postgres_close(struct db *db)
{
	struct pg_db *s = pg_of(db);

	if (s->next != NULL) {
		s->link.pq->freemem(s->next);
	}
	pg_link_done(&s->link);
	own_close(&s->epoll);
	own_close(&s->event);
	free(s);
}

static const struct db_driver POSTGRES_DRIVER = {
	.words = { { "SERIAL", "BIGSERIAL PRIMARY KEY" }, { " WITHOUT ROWID", "" } },
	.close = postgres_close,
	.begin = postgres_begin,
	.commit = postgres_commit,
	.rollback = postgres_rollback,
	.lock = postgres_lock,
	.lock_schema = postgres_lock_schema,
	.run = postgres_run,
	.exec = postgres_exec,
	.version = postgres_version,
	.set_version = postgres_set_version,
	.time = postgres_time,
	.tell = postgres_tell,
	.news_fd = postgres_news_fd,
	.news = postgres_news,
};

int db_open_postgres(const char *url, struct db **ret, struct ssb_error *err)
{
	struct pg_db *s = calloc(1, sizeof(*s));

	if (s == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, DB_WHERE, "out of memory");
	}
	s->db.driver = &POSTGRES_DRIVER;
	s->epoll = -1;
	s->event = -1;
	if (pg_link_init(&s->link, url, err) != 0 || db_migrate(&s->db, err) != 0) {
		db_close(&s->db);
		return -1;
	}
	*ret = &s->db;
	return 0;
}
