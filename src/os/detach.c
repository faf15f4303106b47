/* detach.c - gives a background process its name, priority, limits and signals. */
#include "os/detach.h"

#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"

#define PRIORITY 10

/* Limits the address space to its present size and `more` bytes. The present size can be large: a
 * sanitizer maps much. */
static void limit_memory(size_t more)
{
	char text[64] = { 0 };
	auto_fd fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);

	if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0) {
		rlim_t pages = strtoul(text, NULL, 10);
		rlim_t most = pages * (rlim_t)sysconf(_SC_PAGESIZE) + more;
		(void)setrlimit(RLIMIT_AS, &(struct rlimit){ most, most });
	}
}

void detach_settle(const struct detach *d)
{
	assert(d->name != NULL && d->seconds > 0);

	const struct sigaction late = { .sa_handler = d->late != NULL ? d->late : SIG_DFL };
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++) {
		(void)signal(sig, SIG_DFL);
	}
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	(void)sigaction(SIGALRM, &late, NULL);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)alarm(d->seconds);
	(void)setpriority(PRIO_PROCESS, 0, PRIORITY);
	(void)prctl(PR_SET_NAME, d->name);
	(void)prctl(PR_SET_DUMPABLE, 0);
	(void)setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
	(void)!chdir("/");
	(void)umask(077);
	limit_memory(d->memory);
}
