/* db_postgres_link.c - the connection to PostgreSQL: errors, answers in limited time,
 * connecting, and the form of parameters and rows. See db_postgres.h. */
#include "session/db_postgres.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/number.h"
#include "base/own.h"
#include "os/clock.h"

#define ANSWER_MS      15000  /* longest wait for an answer; the timeouts of SETTINGS are shorter */
#define OLDEST_VERSION 130000 /* pg_current_xact_id() */

/* These settings are sent first on each connection. The server enforces the timeouts, so that
 * a client that hangs within a transaction does not block others for longer than these times.
 * synchronous_commit is raised if this database or role has set it so low that a commit would
 * not wait for the disk. */
static const char SETTINGS[] =
        "SET lock_timeout = '10s'; SET statement_timeout = '12s';"
        "SET idle_in_transaction_session_timeout = '30s'; SET client_min_messages = warning;"
        "SELECT set_config('synchronous_commit', 'on', false)"
        " WHERE current_setting('synchronous_commit') IN ('off', 'local', 'remote_write')";

static const struct {
	const char *state; /* a SQLSTATE, or the first characters that several of them share */
	int sys_errno;
	const char *text;
} STATES[] = {
	{ "40001", EAGAIN, "the transaction could not be serialized" },
	{ "40P01", EDEADLK, "the transaction was undone to end a deadlock" },
	{ "55P03", ETIMEDOUT, "other transactions have held a lock for 10 s" },
	{ "57014", ETIMEDOUT, "a statement took too long" },
	{ "53100", ENOSPC, "the server's disk is full" },
	{ "53", EAGAIN, "the server has run out of a resource" },
	{ "25006", EROFS, "the server is read-only; name the primary server" },
	{ "42501", EACCES,
	  "the database role lacks a permission; give the role its own database or schema" },
	{ "42P07", 0, "the database contains other tables; give the store its own database" },
	{ "42703", 0, "the database contains other tables; give the store its own database" },
};

static void ignore_notice(void *arg, const char *message)
{
	(void)arg;
	(void)message;
}

static void drop_connection(struct pg_link *l)
{
	l->pq->finish(l->conn); /* accepts NULL */
	l->conn = NULL;
}

/* Copies the first line, or nothing if it contains the password. */
static void copy_message(const struct pg_link *l, const char *from, char *out, size_t size)
{
	if (from == NULL || (l->secret[0] != '\0' && strstr(from, l->secret) != NULL)) {
		from = "";
	}
	snprintf(out, size, "%s", from);
	out[strcspn(out, "\n")] = '\0';
}

static int fail_lost(struct pg_link *l, int sys_errno, const char *what, struct ssb_error *err)
{
	char message[240];

	copy_message(l, l->pq->errorMessage(l->conn), message, sizeof(message));
	drop_connection(l);
	if (message[0] == '\0') {
		return ssb_fail(err, SSB_E_SYS, sys_errno, DB_WHERE, "%s", what);
	}
	/* `message` is libpq's and already gives the reason, so no text for sys_errno is added.
	 * sys_errno itself is for callers that ask whether the connection is lost. */
	bool first = err != NULL && err->code == SSB_OK;
	ssb_fail(err, SSB_E_SYS, 0, DB_WHERE, "%s: %s", what, message);
	if (first) {
		err->sys_errno = sys_errno;
	}
	return -1;
}

static int fail_state(struct pg_link *l, const struct pg_result *r, struct ssb_error *err)
{
	const char *state = l->pq->resultErrorField(r, PG_SQLSTATE);
	char message[200];

	if (l->pq->status(l->conn) != PG_CONNECTION_OK) {
		return fail_lost(l, ECONNRESET, "the connection to PostgreSQL was lost", err);
	}
	copy_message(l, l->pq->resultErrorField(r, PG_PRIMARY), message, sizeof(message));
	for (size_t i = 0; state != NULL && i < ARRAY_LEN(STATES); i++) {
		if (strncmp(state, STATES[i].state, strlen(STATES[i].state)) == 0) {
			return ssb_fail(err, SSB_E_SYS, STATES[i].sys_errno, DB_WHERE,
			                "%s (PostgreSQL: %s)", STATES[i].text, message);
		}
	}
	return ssb_fail(err, SSB_E_SYS, 0, DB_WHERE, "PostgreSQL: %s (%s)", message,
	                state != NULL ? state : "no state");
}

/* Waits until the whole answer has arrived. Returns false if it does not arrive. */
static bool wait_answer(struct pg_link *l, uint64_t until_ms)
{
	while (l->pq->isBusy(l->conn) != 0) {
		struct pollfd p = { .fd = l->pq->socket(l->conn), .events = POLLIN };
		uint64_t now = clock_ms();
		int n = poll(&p, 1, now < until_ms ? (int)(until_ms - now) : 0);

		if (n == 0 || (n < 0 && errno != EINTR)) {
			return false;
		}
		if (n > 0 && l->pq->consumeInput(l->conn) == 0) {
			return false;
		}
	}
	return true;
}

static bool is_good(const struct pg_link *l, const struct pg_result *r)
{
	int status = l->pq->resultStatus(r);

	return status == PG_COMMAND_OK || status == PG_TUPLES_OK;
}

int pg_link_answer(struct pg_link *l, int sent, struct pg_result **ret, struct ssb_error *err)
{
	uint64_t until = clock_ms() + ANSWER_MS;
	struct pg_result *last = NULL;

	if (sent == 0) {
		return fail_lost(l, ECONNRESET, "the connection to PostgreSQL was lost", err);
	}
	for (;;) {
		if (!wait_answer(l, until)) {
			l->pq->clear(last);
			return fail_lost(l, ECONNRESET, "PostgreSQL does not answer", err);
		}
		struct pg_result *r = l->pq->getResult(l->conn);
		if (r == NULL) {
			break;
		}
		/* The first failure is kept, and later results are dropped. */
		if (last != NULL && !is_good(l, last)) {
			l->pq->clear(r);
			continue;
		}
		l->pq->clear(last);
		last = r;
	}
	if (last == NULL || !is_good(l, last)) {
		int rc = last != NULL ? fail_state(l, last, err)
		                      : fail_lost(l, ECONNRESET, "PostgreSQL does not answer", err);
		l->pq->clear(last);
		return rc;
	}
	*ret = last;
	return 0;
}

int pg_link_exec(struct pg_link *l, const char *sql, struct ssb_error *err)
{
	struct pg_result *r = NULL;

	assert(l->conn != NULL);
	if (pg_link_answer(l, l->pq->sendQuery(l->conn, sql), &r, err) != 0) {
		return -1;
	}
	l->pq->clear(r);
	return 0;
}

int pg_link_heard(struct pg_link *l, struct ssb_error *err)
{
	if (l->conn == NULL) {
		return ssb_fail(err, SSB_E_SYS, ECONNRESET, DB_WHERE,
		                "there is no connection to PostgreSQL");
	}
	if (l->pq->consumeInput(l->conn) == 0 || l->pq->status(l->conn) != PG_CONNECTION_OK) {
		return fail_lost(l, ECONNRESET, "the connection to PostgreSQL was lost", err);
	}
	return 0;
}

static int check_server(struct pg_link *l, struct ssb_error *err)
{
	int version = l->pq->serverVersion(l->conn);
	const char *encoding = l->pq->parameterStatus(l->conn, "server_encoding");

	if (version < OLDEST_VERSION) {
		return ssb_fail(err, SSB_E_NOT_FOUND, 0, DB_WHERE,
		                "PostgreSQL has version %d; %d or later is needed", version / 10000,
		                OLDEST_VERSION / 10000);
	}
	if (encoding == NULL || strcmp(encoding, "UTF8") != 0) {
		return ssb_fail(err, SSB_E_POLICY, 0, DB_WHERE,
		                "the database is encoded in %.40s; make one with ENCODING 'UTF8'",
		                encoding != NULL ? encoding : "an unknown way");
	}
	return 0;
}

/* The order matters: the URL ("dbname") may override the parameters before it, but not those
 * after it. */
static struct pg_conn *dial_server(const struct pg_link *l)
{
	const char *const names[] = {
		"connect_timeout",  "keepalives_idle",  "keepalives_interval",
		"keepalives_count", "tcp_user_timeout", "fallback_application_name",
		"dbname",           "client_encoding",  NULL
	};
	const char *const values[] = { "10",           "5",    "5",    "2", "10000",
		                       "skillsandbox", l->url, "UTF8", NULL };

	return l->pq->connectdbParams(names, values, 1);
}

int pg_link_ready(struct pg_link *l, struct ssb_error *err)
{
	if (l->conn != NULL && pg_link_heard(l, NULL) == 0) {
		return 0;
	}
	l->conn = dial_server(l);
	if (l->conn == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, DB_WHERE, "out of memory");
	}
	if (l->pq->status(l->conn) != PG_CONNECTION_OK) {
		return fail_lost(l, ENOTCONN, "PostgreSQL cannot be reached", err);
	}
	(void)l->pq->setNoticeProcessor(l->conn, ignore_notice, NULL);
	if (check_server(l, err) != 0 || pg_link_exec(l, SETTINGS, err) != 0) {
		drop_connection(l);
		return -1;
	}
	l->made++;
	return 0;
}

/* Copies the password in l->url to l->secret. libpq's own error message is not shown, because it
 * may quote any part of the URL. */
static int find_secret(struct pg_link *l, struct ssb_error *err)
{
	char *complaint = NULL;
	struct pg_option *v = l->pq->conninfoParse(l->url, &complaint);

	l->pq->freemem(complaint);
	if (v == NULL) {
		return ssb_fail(err, SSB_E_POLICY, 0, DB_WHERE,
		                "the URL of the store is not valid; write "
		                "postgresql://USER@HOST:PORT/DATABASE, with the password in "
		                "~/.pgpass");
	}
	for (const struct pg_option *o = v; o->keyword != NULL; o++) {
		if (strcmp(o->keyword, "password") == 0) {
			l->secret = strdup(o->val != NULL ? o->val : "");
		}
	}
	l->pq->conninfoFree(v);
	if (l->secret == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, DB_WHERE, "out of memory");
	}
	return 0;
}

int pg_link_init(struct pg_link *l, const char *url, struct ssb_error *err)
{
	if (strlen(url) > MAX_STORE_URL) {
		return ssb_fail(err, SSB_E_LIMIT, 0, DB_WHERE, "the URL of the store is too long");
	}
	if (pq_load(DB_WHERE, &l->pq, err) != 0) {
		return -1;
	}
	l->url = strdup(url);
	if (l->url == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, DB_WHERE, "out of memory");
	}
	return find_secret(l, err);
}

static void wipe_text(char *s)
{
	if (s != NULL) {
		explicit_bzero(s, strlen(s));
		free(s);
	}
}

void pg_link_done(struct pg_link *l)
{
	if (l->pq != NULL) {
		drop_connection(l);
	}
	wipe_text(l->url);
	wipe_text(l->secret);
	*l = (struct pg_link){ 0 };
}

/* ---- parameters and rows -------------------------------------------------- */

void pg_params_fill(struct pg_params *p, const struct db_value *args, size_t n)
{
	assert(n <= DB_MAX_ARGS);
	for (size_t i = 0; i < n; i++) {
		const struct db_value *v = &args[i];
		p->formats[i] = 1;
		p->numbers[i] = htobe64((uint64_t)v->i);
		if (v->type == DB_INT) {
			p->types[i] = PG_INT8;
			p->values[i] = (const char *)&p->numbers[i];
			p->lengths[i] = sizeof(p->numbers[i]);
		} else if (v->type == DB_TEXT) {
			p->types[i] = PG_TEXT;
			p->values[i] = v->s;
			p->lengths[i] = (int)v->n;
		} else {
			p->types[i] = 0; /* the server infers the type */
			p->values[i] = NULL;
			p->lengths[i] = 0;
		}
	}
}

/* PostgreSQL returns sums as `numeric` and booleans as "t" and "f". Both become numbers here, as
 * SQLite returns them. */
static int read_number(const char *text, unsigned type, int64_t *ret)
{
	if (type == PG_BOOL) {
		*ret = text[0] == 't' ? 1 : 0;
		return 0;
	}
	return number_parse_signed(text, ret) ? 0 : -1;
}

static int read_value(const struct pq *pq, const struct pg_result *r, int row, int column,
                      struct db_value *ret)
{
	unsigned type = pq->ftype(r, column);
	const char *text = pq->getvalue(r, row, column);

	*ret = (struct db_value){ .type = DB_NULL };
	if (pq->getisnull(r, row, column) != 0) {
		return 0;
	}
	switch (type) {
	case PG_BOOL:
	case PG_INT8:
	case PG_INT4:
	case PG_INT2:
	case PG_NUMERIC:
		ret->type = DB_INT;
		return read_number(text, type, &ret->i);
	default:
		ret->type = DB_TEXT;
		ret->s = text;
		ret->n = (size_t)pq->getlength(r, row, column);
		return 0;
	}
}

int db_postgres_rows(const struct pq *pq, const struct pg_result *r, db_row_fn *row, void *arg,
                     struct ssb_error *err)
{
	struct db_value v[DB_MAX_COLS];
	int n = pq->nfields(r);

	if (n > DB_MAX_COLS) {
		return ssb_fail(err, SSB_E_LIMIT, 0, DB_WHERE, "a row of %d columns", n);
	}
	for (int i = 0; i < pq->ntuples(r); i++) {
		for (int k = 0; k < n; k++) {
			if (read_value(pq, r, i, k, &v[k]) != 0) {
				return ssb_fail(err, SSB_E_SYS, 0, DB_WHERE,
				                "a number in the store is out of range");
			}
		}
		if (row(arg, v, (size_t)n) != 0) {
			break;
		}
	}
	return 0;
}

int64_t db_postgres_changes(const struct pq *pq, struct pg_result *r)
{
	int64_t n = 0;

	/* For a SELECT the server counts the rows read, which are not changes. */
	if (strncmp(pq->cmdStatus(r), "SELECT", 6) != 0) {
		(void)read_number(pq->cmdTuples(r), PG_INT8, &n);
	}
	return n;
}
