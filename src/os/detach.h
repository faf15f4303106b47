/* detach.h - a process that nobody waits for: it has a name, a low priority, an
 * end, and nothing of its starter's signals. */
#ifndef OS_DETACH_H
#define OS_DETACH_H

#include <stddef.h>

struct detach {
	const char *name;      /* for ps; 15 bytes of it */
	unsigned seconds;      /* then it ends, whatever hangs */
	void (*late)(int sig); /* by this, which is safe in a signal handler; NULL: SIGALRM */
	size_t memory;         /* beyond what is mapped now */
};

/* For the process itself, once it is alone. Its memory cannot be read by others
 * of the same user: it may hold secrets. */
void detach_settle(const struct detach *d);

#endif
