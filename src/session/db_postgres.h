/* db_postgres.h - the connection to PostgreSQL: made, lost, made again; questions
 * with an end to the waiting for their answer. */
#ifndef SESSION_DB_POSTGRES_H
#define SESSION_DB_POSTGRES_H

#include "os/pq.h"
#include "session/db_driver.h"

struct pg_link {
	const struct pq *pq;
	struct pg_conn *conn; /* NULL: lost, or not made yet */
	char *url;            /* may hold a password */
	char *secret;         /* that password, "" if none: in no message */
	uint64_t made;        /* how often a connection was made */
};

/* `url` is copied. Connects nowhere. */
int pg_link_init(struct pg_link *l, const char *url, struct ssb_error *err);
void pg_link_done(struct pg_link *l); /* accepts a zeroed one */

/* Connects, unless it is. Notices also that the server has hung up. */
int pg_link_ready(struct pg_link *l, struct ssb_error *err);

/* The answer to what was sent: `sent` is what PQsend...() returned. The result is
 * the caller's, PQclear(), also of a question of many statements: then it is that
 * of the last. Where the connection breaks, or no answer comes, l->conn is NULL
 * afterwards. */
int pg_link_answer(struct pg_link *l, int sent, struct pg_result **ret, struct ssb_error *err);

/* Reads what has arrived by itself. */
int pg_link_heard(struct pg_link *l, struct ssb_error *err);

/* Statements without parameters or rows. */
int pg_link_exec(struct pg_link *l, const char *sql, struct ssb_error *err);

/* Parameters, all in the server's binary form: texts need no copy. */
struct pg_params {
	unsigned types[DB_MAX_ARGS];
	const char *values[DB_MAX_ARGS];
	int lengths[DB_MAX_ARGS];
	int formats[DB_MAX_ARGS];
	uint64_t numbers[DB_MAX_ARGS];
};

void pg_params_fill(struct pg_params *p, const struct db_value *args, size_t n);

/* Gives each row to `row`. */
int db_postgres_rows(const struct pq *pq, const struct pg_result *r, db_row_fn *row, void *arg,
                     struct ssb_error *err);
int64_t db_postgres_changes(const struct pq *pq, struct pg_result *r);

#endif
