/* errand.h - what the loop must not do itself, because it takes as long as somebody else
 * wants it to (a lock, a store) or as a record is large: done by a process that is forked
 * for it, which brings back bytes.
 *
 * So many at once, and so many of them for one client; others wait. An errand that takes
 * too long is ended, and so is one whose client has gone, or whose server has. */
#ifndef SERVE_ERRAND_H
#define SERVE_ERRAND_H

#include "base/buf.h"
#include "serve/serve.h"

struct errand;

enum errand_fate {
	ERRAND_DONE,
	ERRAND_CANCELED,
	ERRAND_UNSTARTED, /* no process, no memory */
	ERRAND_LATE,
	ERRAND_LARGE,   /* what it brought was too much */
	ERRAND_CRASHED, /* or ended without a word */
	ERRAND_UNDONE,  /* `after` failed; what was brought is there */
	ERRAND_FATES,
};

struct errand_end {
	enum errand_fate fate;
	const char *why; /* for people: "it took too long" */
	const char *data;
	size_t len;
};

struct errand_wish {
	const char *who;                         /* copied */
	void (*run)(void *arg, struct buf *out); /* in the process of the errand */
	int (*after)(void *arg);                 /* there too, see below; NULL: nothing */
	void (*ended)(void *arg, const struct errand_end *end); /* from the loop, once */
	void *arg;
	unsigned limit_ms; /* 0: MAX_ERRAND_TIME, with `after` half of it */
};

/* `ended` comes in any case, never from inside of this. With `after` the bytes are sent
 * before it is called, and the errand is brought to its end once it has begun, whatever
 * becomes of client and server; where `after` takes too long it goes on and nobody waits.
 * *ret is borrowed until `ended`. -1: no memory, and `ended` does not come. */
int errand_start(struct serve *s, const struct errand_wish *w, struct errand **ret,
                 struct ssb_error *err);
void errand_cancel(struct errand *e); /* `ended` comes as always, soon */

int errands_new(struct serve *s, struct errands **ret, struct ssb_error *err);
void errands_free(struct errands *a); /* ends all; accepts NULL */

/* ---- the rest of a call ------------------------------------------------------- */

/* As errand_start, for the client of the call (w->who is not looked at), and canceled with
 * the call; `ended` must let go of that (mcp_on_cancel). */
int errand_of_call(struct serve *s, struct mcp_call *c, const struct errand_wish *w,
                   struct ssb_error *err);

/* How a call is answered in an errand. */
struct errand_answer {
	mcp_handler *answer; /* there: `arg` and the call; it answers as always */
	bool tool;           /* it is one of tools/call: so is an error */
	int (*after)(void *arg);
	/* Where there is no answer from there; NULL: an error that says so. */
	void (*failed)(void *arg, struct mcp_call *c, const struct errand_end *end);
	void (*free)(void *arg); /* NULL: it is not ours */
	void *arg;
	unsigned limit_ms; /* as of a wish */
};
void errand_answer(struct serve *s, struct mcp_call *c, const struct errand_answer *w);
/* A handler, there; `s` is its app. */
void errand_method(struct serve *s, struct mcp_call *c, mcp_handler *handle);
void errand_tool(struct serve *s, struct mcp_call *c, mcp_handler *handle);

#endif
