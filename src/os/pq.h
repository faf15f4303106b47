/* pq.h - PostgreSQL's client library, loaded at its first use. The build does not need its header:
 * the functions that are used here have been the same in every version of libpq.so.5. */
#ifndef OS_PQ_H
#define OS_PQ_H

#include "skillsandbox.h"

struct pg_conn;
struct pg_result;

/* PGnotify: one message of a channel to which the client listens (LISTEN). */
struct pg_notify {
	char *channel;
	int backend; /* the server process that sent it */
	char *payload;
	struct pg_notify *next; /* private to the library */
};

/* PQconninfoOption: one setting of a connection. */
struct pg_option {
	char *keyword;
	char *envvar;
	char *compiled;
	char *val; /* or NULL */
	char *label;
	char *dispchar; /* "*": the value is a password */
	int dispsize;
};

enum { PG_CONNECTION_OK = 0 };
enum { PG_COMMAND_OK = 1, PG_TUPLES_OK = 2 };
enum { PG_IDLE = 0 };                         /* transaction status */
enum { PG_SQLSTATE = 'C', PG_PRIMARY = 'M' }; /* fields of an error */
/* The numbers that the server gives to its types. */
enum {
	PG_BOOL = 16,
	PG_INT8 = 20,
	PG_INT2 = 21,
	PG_INT4 = 23,
	PG_TEXT = 25,
	PG_NUMERIC = 1700,
};

typedef void pg_notice_fn(void *arg, const char *message);

/* Each row has the type of the result, the name without "PQ", and the parameters. */
#define PQ_CALLS(X)                                                                                \
	X(struct pg_conn *, connectdbParams,                                                       \
	  (const char *const *names, const char *const *values, int expand))                       \
	X(void, finish, (struct pg_conn * c))                                                      \
	X(int, status, (const struct pg_conn *c))                                                  \
	X(int, transactionStatus, (const struct pg_conn *c))                                       \
	X(int, socket, (const struct pg_conn *c))                                                  \
	X(int, backendPID, (const struct pg_conn *c))                                              \
	X(int, serverVersion, (const struct pg_conn *c))                                           \
	X(const char *, parameterStatus, (const struct pg_conn *c, const char *name))              \
	X(char *, errorMessage, (const struct pg_conn *c))                                         \
	X(pg_notice_fn *, setNoticeProcessor, (struct pg_conn * c, pg_notice_fn * fn, void *arg))  \
	X(struct pg_option *, conninfoParse, (const char *info, char **err))                       \
	X(void, conninfoFree, (struct pg_option * v))                                              \
	X(int, sendQuery, (struct pg_conn * c, const char *sql))                                   \
	X(int, sendPrepare,                                                                        \
	  (struct pg_conn * c, const char *name, const char *sql, int n, const unsigned *types))   \
	X(int, sendQueryPrepared,                                                                  \
	  (struct pg_conn * c, const char *name, int n, const char *const *values,                 \
	   const int *lengths, const int *formats, int binary))                                    \
	X(int, sendQueryParams,                                                                    \
	  (struct pg_conn * c, const char *sql, int n, const unsigned *types,                      \
	   const char *const *values, const int *lengths, const int *formats, int binary))         \
	X(int, consumeInput, (struct pg_conn * c))                                                 \
	X(int, isBusy, (struct pg_conn * c))                                                       \
	X(struct pg_result *, getResult, (struct pg_conn * c))                                     \
	X(struct pg_notify *, notifies, (struct pg_conn * c))                                      \
	X(int, resultStatus, (const struct pg_result *r))                                          \
	X(char *, resultErrorField, (const struct pg_result *r, int field))                        \
	X(char *, cmdStatus, (struct pg_result * r))                                               \
	X(char *, cmdTuples, (struct pg_result * r))                                               \
	X(int, ntuples, (const struct pg_result *r))                                               \
	X(int, nfields, (const struct pg_result *r))                                               \
	X(unsigned, ftype, (const struct pg_result *r, int column))                                \
	X(int, getisnull, (const struct pg_result *r, int row, int column))                        \
	X(int, getlength, (const struct pg_result *r, int row, int column))                        \
	X(char *, getvalue, (const struct pg_result *r, int row, int column))                      \
	X(void, clear, (struct pg_result * r))                                                     \
	X(void, freemem, (void *p))

/* A pointer to each function of PQ_CALLS. */
struct pq {
/* The parameters have parentheses already. NOLINTNEXTLINE(bugprone-macro-parentheses) */
#define PQ_CALL(result, name, parameters) result(*name) parameters;
	PQ_CALLS(PQ_CALL)
#undef PQ_CALL
};

/* Like sqlite_load(), for libpq. */
int pq_load(const char *where, const struct pq **ret, struct ssb_error *err);

#endif
