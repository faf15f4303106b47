/* detach.h - settings for a background process that no other process waits for: a name, a low
 * priority, a time limit, and default signal handling. */
#ifndef OS_DETACH_H
#define OS_DETACH_H

#include <stddef.h>

struct detach {
	const char *name;      /* for ps, which shows 15 bytes of it */
	unsigned seconds;      /* the process ends after this time, even if it hangs */
	void (*late)(int sig); /* called after `seconds`. It must end the process and be
	                          async-signal-safe. NULL: SIGALRM ends the process */
	size_t memory;         /* bytes that the process may map in addition to those mapped now */
};

/* Must be called by the background process itself, after the fork. Afterwards other processes of
 * the same user cannot read its memory, which may contain secrets. */
void detach_settle(const struct detach *d);

#endif
