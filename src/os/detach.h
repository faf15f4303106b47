/* detach.h - settings for a background process that no other process waits for: a name, a low
 * priority, a time limit, and default signal handling. */
#ifndef OS_DETACH_H
#define OS_DETACH_H

#include <stddef.h>

struct detach {
	const char *name;      /* for ps, which shows 15 bytes of it */
	unsigned seconds;      /* it ends after this time, even if it hangs */
	void (*late)(int sig); /* an async-signal-safe function that ends it; NULL: SIGALRM */
	size_t memory;         /* beyond what is mapped now */
};

/* The process calls this itself, after it was forked. Other processes of the same user cannot read
 * its memory, because it may hold secrets. */
void detach_settle(const struct detach *d);

#endif
