/* errand.h - work that the loop must not do itself, because it can take long: it waits for a lock
 * or a store, or reads something as large as a record. The server forks a process for it, which
 * returns bytes.
 *
 * The number of errands at one time is limited, in all and for each client; others wait in a
 * queue. An errand that takes too long is ended, and so is one whose client or server is gone. */
#ifndef SERVE_ERRAND_H
#define SERVE_ERRAND_H

#include "base/buf.h"
#include "serve/serve.h"

struct errand;
struct errands;

enum errand_fate {
	ERRAND_DONE,
	ERRAND_CANCELED,
	ERRAND_UNSTARTED, /* there was no process or no memory for the errand */
	ERRAND_LATE,
	ERRAND_LARGE,   /* the errand returned too many bytes */
	ERRAND_CRASHED, /* the process ended without an answer */
	ERRAND_UNDONE,  /* `after` failed; the server has the bytes */
	ERRAND_FATES,
};

struct errand_end {
	enum errand_fate fate;
	const char *why; /* for people, such as "it took too long"; NULL if ERRAND_DONE */
	const char *data;
	size_t len;
};

struct errand_wish {
	const char *who;                         /* the client; copied */
	void (*run)(void *arg, struct buf *out); /* runs in the errand's process */
	/* Runs in the errand's process after the bytes were sent. An errand with `after` is always
	 * finished once it has started, even if the client and the server are gone. If `after`
	 * takes longer than the limit, it continues and nothing waits for it. NULL: nothing is left
	 * to do. */
	int (*after)(void *arg);
	void (*ended)(void *arg, const struct errand_end *end); /* called once, by the loop */
	void *arg;
	unsigned limit_ms; /* 0: MAX_ERRAND_TIME, or half of it if `after` is set */
};

/* Starts an errand, and never calls `ended` itself. *ret is borrowed until `ended` is called.
 * Returns -1 if there is no memory; then `ended` is never called. */
int errand_start(struct serve *s, const struct errand_wish *w, struct errand **ret,
                 struct ssb_error *err);
/* Cancels the errand. `ended` is called soon, as for every errand. */
void errand_cancel(struct errand *e);

int errands_new(struct serve *s, struct errands **ret, struct ssb_error *err);
void errands_free(struct errands *a); /* ends all errands; accepts NULL */

/* ---- errands of a call -------------------------------------------------------- */

/* As errand_start(), for the client of the call (w->who is ignored). If the call is canceled, the
 * errand is canceled, too; `ended` must undo this with mcp_on_cancel(). */
int errand_of_call(struct serve *s, struct mcp_call *c, const struct errand_wish *w,
                   struct ssb_error *err);

/* Describes how an errand answers a call. */
struct errand_answer {
	mcp_handler *answer; /* runs in the errand, with `arg`, and answers the call as usual */
	bool tool; /* the call is a tools/call, so an error is returned as the tool's result */
	int (*after)(void *arg);
	/* Called if the errand did not answer the call: must answer it. NULL: the call gets an
	 * error that says why. */
	void (*failed)(void *arg, struct mcp_call *c, const struct errand_end *end);
	void (*free)(void *arg); /* frees `arg`; NULL: `arg` is not freed */
	void *arg;
	unsigned limit_ms; /* as in struct errand_wish */
};
void errand_answer(struct serve *s, struct mcp_call *c, const struct errand_answer *w);
/* Runs a handler in an errand, with `s` as its app. */
void errand_method(struct serve *s, struct mcp_call *c, mcp_handler *handle);
void errand_tool(struct serve *s, struct mcp_call *c, mcp_handler *handle);

#endif
