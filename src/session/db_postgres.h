/* db_postgres.h - the connection to PostgreSQL: connects, notices a loss, connects again,
 * and limits the time to wait for an answer. */
#ifndef SESSION_DB_POSTGRES_H
#define SESSION_DB_POSTGRES_H

#include "os/pq.h"
#include "session/db_driver.h"

struct pg_link {
	const struct pq *pq;
	struct pg_conn *conn; /* NULL: lost, or not connected yet */
	char *url;            /* may contain a password */
	char *secret;         /* the password in the URL, or ""; must not appear in any message */
	uint64_t made;        /* number of connections made so far */
};

/* Copies `url`. Does not connect. */
int pg_link_init(struct pg_link *l, const char *url, struct ssb_error *err);
void pg_link_done(struct pg_link *l); /* accepts a zeroed one */

/* Connects unless there is a connection. Notices if the server has closed it. */
int pg_link_ready(struct pg_link *l, struct ssb_error *err);

/* Waits for the answer to a query; `sent` is what PQsend...() returned. `*ret` is new, and the
 * caller must free it with PQclear(). For a query of several statements it is the result of the
 * last one. If the connection breaks or no answer comes, l->conn is NULL afterwards. */
int pg_link_answer(struct pg_link *l, int sent, struct pg_result **ret, struct ssb_error *err);

/* Reads what the server sent without being asked. */
int pg_link_heard(struct pg_link *l, struct ssb_error *err);

/* Runs statements without parameters or rows. */
int pg_link_exec(struct pg_link *l, const char *sql, struct ssb_error *err);

/* The parameters of a query, all in the server's binary form, so that texts need no copy. */
struct pg_params {
	unsigned types[DB_MAX_ARGS];
	const char *values[DB_MAX_ARGS];
	int lengths[DB_MAX_ARGS];
	int formats[DB_MAX_ARGS];
	uint64_t numbers[DB_MAX_ARGS];
};

void pg_params_fill(struct pg_params *p, const struct db_value *args, size_t n);

/* Calls `row` for each row. */
int db_postgres_rows(const struct pq *pq, const struct pg_result *r, db_row_fn *row, void *arg,
                     struct ssb_error *err);
int64_t db_postgres_changes(const struct pq *pq, struct pg_result *r);

#endif
