/* errand.h - work that the loop must not do itself, because it can take long: it waits for a lock
 * or a store, or reads something as large as a record. A process is forked for it, which brings
 * back bytes.
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
	ERRAND_UNSTARTED, /* no process, or no memory */
	ERRAND_LATE,
	ERRAND_LARGE,   /* it brought too many bytes */
	ERRAND_CRASHED, /* or ended without an answer */
	ERRAND_UNDONE,  /* `after` failed; the bytes are there */
	ERRAND_FATES,
};

struct errand_end {
	enum errand_fate fate;
	const char *why; /* for people: "it took too long"; NULL: ERRAND_DONE */
	const char *data;
	size_t len;
};

struct errand_wish {
	const char *who;                         /* the client; copied */
	void (*run)(void *arg, struct buf *out); /* in the process of the errand */
	/* In that process, too, after the bytes were sent. An errand with `after` is finished once
	 * it has started, whatever becomes of the client and the server; if `after` takes longer
	 * than the limit, it goes on and nothing waits for it. NULL: nothing is left to do. */
	int (*after)(void *arg);
	void (*ended)(void *arg, const struct errand_end *end); /* from the loop, exactly once */
	void *arg;
	unsigned limit_ms; /* 0: MAX_ERRAND_TIME, and half of it with `after` */
};

/* `ended` is never called from inside of this. *ret is borrowed until `ended`. -1: no memory, and
 * `ended` is not called. */
int errand_start(struct serve *s, const struct errand_wish *w, struct errand **ret,
                 struct ssb_error *err);
/* `ended` is called as always, soon. */
void errand_cancel(struct errand *e);

int errands_new(struct serve *s, struct errands **ret, struct ssb_error *err);
void errands_free(struct errands *a); /* ends all of them; accepts NULL */

/* ---- errands of a call -------------------------------------------------------- */

/* As errand_start() for the client of the call (w->who is ignored). Canceling the call cancels the
 * errand: `ended` must remove that with mcp_on_cancel(). */
int errand_of_call(struct serve *s, struct mcp_call *c, const struct errand_wish *w,
                   struct ssb_error *err);

/* How a call is answered by an errand. */
struct errand_answer {
	mcp_handler *answer; /* in the errand, with `arg`; it answers the call as usual */
	bool tool;           /* a call of tools/call, and so is an error of it */
	int (*after)(void *arg);
	/* Answers if the errand did not; NULL: with an error that says why. */
	void (*failed)(void *arg, struct mcp_call *c, const struct errand_end *end);
	void (*free)(void *arg); /* NULL: `arg` is not ours */
	void *arg;
	unsigned limit_ms; /* as in a wish */
};
void errand_answer(struct serve *s, struct mcp_call *c, const struct errand_answer *w);
/* Runs a handler in an errand, with `s` as its app. */
void errand_method(struct serve *s, struct mcp_call *c, mcp_handler *handle);
void errand_tool(struct serve *s, struct mcp_call *c, mcp_handler *handle);

#endif
