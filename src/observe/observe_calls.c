/* observe_calls.c - handles one notified call: finds its handler, answers the call, and records the
 * answer. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>

#include "observe/observe_calls.h"
#include "base/array.h"
#include "base/own.h"
#include "os/clock.h"
#include "os/notify.h"

static const struct observed_call CALLS[] = {
	{ SYS_openat, CALL_OPEN, OP_OPEN, .dir = ARG0, .path = ARG1, .flags = ARG2,
	  .nofollow = O_NOFOLLOW },
#ifdef SYS_open
	{ SYS_open, CALL_OPEN, OP_OPEN, .path = ARG0, .flags = ARG1, .nofollow = O_NOFOLLOW },
	{ SYS_creat, CALL_OPEN, OP_OPEN, .path = ARG0 },
	{ SYS_unlink, CALL_CHANGE, OP_UNLINK, .path = ARG0, .last = LAST_ITSELF, .entry = true },
	{ SYS_rmdir, CALL_CHANGE, OP_RMDIR, .path = ARG0, .last = LAST_ITSELF, .entry = true },
	{ SYS_mkdir, CALL_CHANGE, OP_MKDIR, .path = ARG0, .makes = true, .last = LAST_ITSELF },
	{ SYS_mknod, CALL_CHANGE, OP_MKNOD, .path = ARG0, .makes = true, .last = LAST_ITSELF,
	  .entry = true, .special = true },
	{ SYS_symlink, CALL_CHANGE, OP_SYMLINK, .path = ARG1, .text = ARG0, .makes = true,
	  .last = LAST_ITSELF, .entry = true },
	{ SYS_chmod, CALL_CHANGE, OP_CHMOD, .path = ARG0 },
	{ SYS_chown, CALL_CHANGE, OP_CHOWN, .path = ARG0 },
	{ SYS_lchown, CALL_CHANGE, OP_CHOWN, .path = ARG0, .last = LAST_ENTERED },
	{ SYS_rename, CALL_TWO, OP_RENAME, .path = ARG0, .path2 = ARG1, .last = LAST_ITSELF,
	  .takes = true },
	{ SYS_link, CALL_TWO, OP_LINK, .path = ARG0, .path2 = ARG1, .last = LAST_ITSELF },
#endif
	{ SYS_unlinkat, CALL_CHANGE, OP_UNLINK, .dir = ARG0, .path = ARG1, .last = LAST_ITSELF,
	  .entry = true },
	{ SYS_mkdirat, CALL_CHANGE, OP_MKDIR, .dir = ARG0, .path = ARG1, .makes = true,
	  .last = LAST_ITSELF },
	{ SYS_mknodat, CALL_CHANGE, OP_MKNOD, .dir = ARG0, .path = ARG1, .makes = true,
	  .last = LAST_ITSELF, .entry = true, .special = true },
	{ SYS_symlinkat, CALL_CHANGE, OP_SYMLINK, .dir = ARG1, .path = ARG2, .text = ARG0,
	  .makes = true, .last = LAST_ITSELF, .entry = true },
	{ SYS_fchmodat, CALL_CHANGE, OP_CHMOD, .dir = ARG0, .path = ARG1 },
	{ 452 /* fchmodat2 */, CALL_CHANGE, OP_CHMOD, .dir = ARG0, .path = ARG1, .flags = ARG3,
	  .nofollow = AT_SYMLINK_NOFOLLOW },
	{ SYS_fchownat, CALL_CHANGE, OP_CHOWN, .dir = ARG0, .path = ARG1, .flags = ARG4,
	  .nofollow = AT_SYMLINK_NOFOLLOW },
	{ SYS_truncate, CALL_CHANGE, OP_TRUNCATE, .path = ARG0 },
	{ SYS_setxattr, CALL_CHANGE, OP_SETXATTR, .path = ARG0, .text = ARG1 },
	{ SYS_lsetxattr, CALL_CHANGE, OP_SETXATTR, .path = ARG0, .text = ARG1,
	  .last = LAST_ENTERED },
	{ 463 /* setxattrat */, CALL_CHANGE, OP_SETXATTR, .dir = ARG0, .path = ARG1, .flags = ARG2,
	  .text = ARG3, .nofollow = AT_SYMLINK_NOFOLLOW },
	{ SYS_removexattr, CALL_CHANGE, OP_REMOVEXATTR, .path = ARG0, .text = ARG1 },
	{ SYS_lremovexattr, CALL_CHANGE, OP_REMOVEXATTR, .path = ARG0, .text = ARG1,
	  .last = LAST_ENTERED },
	{ 466 /* removexattrat */, CALL_CHANGE, OP_REMOVEXATTR, .dir = ARG0, .path = ARG1,
	  .flags = ARG2, .text = ARG3, .nofollow = AT_SYMLINK_NOFOLLOW },
	{ SYS_renameat, CALL_TWO, OP_RENAME, .dir = ARG0, .path = ARG1, .dir2 = ARG2, .path2 = ARG3,
	  .last = LAST_ITSELF, .takes = true },
	{ SYS_renameat2, CALL_TWO, OP_RENAME, .dir = ARG0, .path = ARG1, .flags = ARG4,
	  .dir2 = ARG2, .path2 = ARG3, .last = LAST_ITSELF, .takes = true },
	{ SYS_linkat, CALL_TWO, OP_LINK, .dir = ARG0, .path = ARG1, .flags = ARG4, .dir2 = ARG2,
	  .path2 = ARG3, .last = LAST_ITSELF },
	{ SYS_fchmod, CALL_FD, OP_CHMOD, .path = ARG0 },
	{ SYS_fchown, CALL_FD, OP_CHOWN, .path = ARG0 },
	{ SYS_ftruncate, CALL_FD, OP_TRUNCATE, .path = ARG0 },
	{ SYS_fsetxattr, CALL_FD, OP_SETXATTR, .path = ARG0, .text = ARG1 },
	{ SYS_fremovexattr, CALL_FD, OP_REMOVEXATTR, .path = ARG0, .text = ARG1 },
	{ .nr = SYS_connect, .family = CALL_NETWORK, .op = OP_CONNECT },
	{ .nr = SYS_bind, .family = CALL_NETWORK, .op = OP_BIND },
	{ .nr = SYS_sendto, .family = CALL_NETWORK, .op = OP_SEND },
	{ .nr = SYS_sendmsg, .family = CALL_NETWORK, .op = OP_SEND },
	{ .nr = SYS_sendmmsg, .family = CALL_NETWORK, .op = OP_SEND },
	{ SYS_execve, CALL_EXEC, OP_EXEC, .path = ARG0, .argv = ARG1 },
	{ SYS_execveat, CALL_EXEC, OP_EXEC, .dir = ARG0, .path = ARG1, .flags = ARG4, .argv = ARG2,
	  .nofollow = AT_SYMLINK_NOFOLLOW },
#ifdef SYS_access
	{ SYS_access, CALL_LOOK, OP_ACCESS, .path = ARG0 },
#endif
	{ SYS_faccessat, CALL_LOOK, OP_ACCESS, .dir = ARG0, .path = ARG1 },
	{ 439 /* faccessat2 */, CALL_LOOK, OP_ACCESS, .dir = ARG0, .path = ARG1, .flags = ARG3,
	  .nofollow = AT_SYMLINK_NOFOLLOW },
	{ SYS_chdir, CALL_LOOK, OP_CHDIR, .path = ARG0 },
	{ SYS_kill, CALL_SIGNAL, OP_SIGNAL, .signal = ARG1 },
	{ SYS_tkill, CALL_SIGNAL, OP_SIGNAL, .signal = ARG1, .target = TARGET_THREAD },
	{ SYS_tgkill, CALL_SIGNAL, OP_SIGNAL, .signal = ARG2 },
	{ SYS_rt_sigqueueinfo, CALL_SIGNAL, OP_SIGNAL, .signal = ARG1 },
	{ SYS_rt_tgsigqueueinfo, CALL_SIGNAL, OP_SIGNAL, .signal = ARG2 },
	{ SYS_pidfd_send_signal, CALL_SIGNAL, OP_SIGNAL, .signal = ARG1, .target = TARGET_PIDFD },
};

static struct bytes take_bytes(const char *s)
{
	return (struct bytes){ s, strlen(s) };
}

void observe_tell(struct observer *o, const struct seccomp_notif *n, struct event *e)
{
	if (o->setup.trace == NULL || (o->setup.plan->audit == AUDIT_VIOLATIONS && !e->violation)) {
		return;
	}
	const struct process *p = observe_process(o, n);
	e->pid = p->pid;
	e->ppid = p->ppid;
	e->program = take_bytes(p->program);
	if (o->threaded) {
		e->at_us = clock_us();
		observe_queue_put(&o->queue, e);
	} else {
		trace_add(o->setup.trace, e);
	}
}

/* ---- paths --------------------------------------------------------------- */

uint64_t observe_arg(const struct seccomp_notif *n, enum arg at)
{
	assert(at != NO_ARG);
	return n->data.args[at - ARG0];
}

int observe_dir(const struct seccomp_notif *n, enum arg at)
{
	return at == NO_ARG ? AT_FDCWD : (int)observe_arg(n, at);
}

struct path_argument observe_argument(const struct seccomp_notif *n, const struct observed_call *c)
{
	int flags = c->flags != NO_ARG ? (int)observe_arg(n, c->flags) : 0;

	return (struct path_argument){
		.dir = observe_dir(n, c->dir),
		.path = c->path,
		.last = (flags & c->nofollow) != 0 ? LAST_ENTERED : c->last,
		/* open() has other flags, which use the same bits. */
		.empty = c->family != CALL_OPEN && (flags & AT_EMPTY_PATH) != 0,
	};
}

static bool ends_inside(const char *path)
{
	size_t n = strlen(path);

	n -= n > 1 && path[n - 1] == '.';
	return n > 0 && path[n - 1] == '/';
}

/* Resolves an empty path. With AT_EMPTY_PATH it means the directory `a->dir`; otherwise it names no
 * file. */
static void look_empty(struct observer *o, const struct seccomp_notif *n,
                       const struct path_argument *a, struct resolved *ret)
{
	if (a->empty) {
		observe_resolve_fd(o, n, a->dir, ret);
		return;
	}
	ret->path[0] = '\0';
	ret->exists = ret->unseen = ret->known = false;
}

bool observe_look(struct observer *o, const struct seccomp_notif *n, const struct path_argument *a,
                  struct path_looked *ret)
{
	if (notify_read_string((pid_t)n->pid, observe_arg(n, a->path), ret->raw, sizeof(ret->raw)) <
	    0) {
		return false;
	}
	/* Read the facts about the caller now, because it may end while the path is followed. */
	(void)observe_process(o, n);
	if (ret->raw[0] == '\0') {
		look_empty(o, n, a, &ret->at);
	} else {
		bool follow = a->last == LAST_FOLLOWED ||
		              (a->last == LAST_ENTERED && ends_inside(ret->raw));
		observe_resolve(o, n, a->dir, ret->raw, follow, &ret->at);
	}
	errno = EMFILE; /* the errno if o->starved: the supervisor has no more fds */
	return !o->starved;
}

bool observe_is_nowhere(const struct path_looked *l)
{
	return l->at.path[0] == '\0';
}

/* ---- answers --------------------------------------------------------------- */

void observe_unreadable(struct observer *o, const struct seccomp_notif *n,
                        const struct observed_call *c)
{
	struct event e = { .kind = c->family == CALL_EXEC   ? EV_PROCESS_SPAWNED
		                   : c->family == CALL_OPEN ? EV_FILE_READ
		                                            : EV_FILE_WRITE,
		           .status = STATUS_DENIED,
		           .op = c->op,
		           .reason = REASON_UNREADABLE,
		           .error = errno == ENAMETOOLONG ? ENAMETOOLONG
		                    : errno == EMFILE     ? ENOMEM
		                                          : EFAULT };

	/* The call is refused although the kernel might be able to read the argument, because a
	 * call that cannot be recorded must not happen. */
	if (notify_valid(o->listener, n)) {
		(void)observe_process(o, n);
		notify_refuse(o->listener, n, e.error);
		observe_tell(o, n, &e);
	}
}

bool observe_answer(struct observer *o, const struct seccomp_notif *n, const struct path_looked *l,
                    struct event *e)
{
	const struct judgement *j = &l->says;

	bool idle = j->allowed && j->error != 0; /* nothing is there: see struct judgement */

	/* If notify_continue() works, the caller still waited for the answer, so the memory that we
	 * read was its own. A refusal is recorded even if the caller ends while we answer; so
	 * before a refusal we check that the caller still waits. */
	if (!(j->allowed && !idle ? notify_continue(o->listener, n)
	                          : notify_valid(o->listener, n))) {
		return false;
	}
	if (idle) {
		notify_refuse(o->listener, n, j->error);
		e->status = STATUS_ABSENT;
	} else if (j->allowed) {
		e->status = STATUS_ASKED;
	} else {
		notify_refuse(o->listener, n, j->error);
		e->status = STATUS_DENIED;
		e->kind = EV_FILE_BLOCKED;
		e->error = j->error;
	}
	/* A path that the run made itself is not missed. */
	if (j->reason == REASON_NOT_GRANTED ||
	    (e->kind == EV_FILE_WRITE && e->status == STATUS_ASKED)) {
		observe_named_met(o, l->at.path);
	}
	e->violation = j->violation;
	e->path = take_bytes(l->at.path);
	if (strcmp(l->raw, l->at.path) != 0) {
		e->raw = take_bytes(l->raw);
	}
	e->rule = j->rule;
	e->entry = j->entry;
	e->reason = j->reason;
	e->remedy = j->remedy;
	return true;
}

/* Returns whether the kernel has closed the other end of the pipe, which it does when an execve of
 * the first process works. */
static bool pipe_is_closed(const struct observer *o)
{
	struct pollfd p = { .fd = *o->setup.exec_pipe, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

/* Returns whether the skill makes this call, and not our own search through PATH. Before the
 * skill's first call, our search must have made an execve (goes_on). After an execve that fails,
 * our search makes no observed call except the next execve. */
static bool is_skill(const struct observer *o, const struct seccomp_notif *n)
{
	bool searches = n->data.nr == SYS_execve && (pid_t)n->pid == o->first;

	return o->exec.goes_on && (!searches || pipe_is_closed(o));
}

static void dispatch_call(struct observer *o, const struct seccomp_notif *n,
                          const struct observed_call *c)
{
	switch (c->family) {
	case CALL_OPEN:
	case CALL_CHANGE:
	case CALL_TWO:
	case CALL_FD:
	case CALL_LOOK:
		observe_file(o, n, c);
		break;
	case CALL_NETWORK:
		observe_network(o, n);
		break;
	case CALL_EXEC:
		observe_exec(o, n, c);
		break;
	case CALL_SIGNAL:
		observe_signal(o, n, c);
		break;
	}
}

void observe_call(struct observer *o, struct seccomp_notif *n)
{
	uint32_t verdict = seccomp_eval(o->setup.filter, &n->data);
	const struct observed_call *c =
	        ARRAY_FIND(call, CALLS, ARRAY_LEN(CALLS), call->nr == n->data.nr);

	if (!o->armed && is_skill(o, n)) {
		observe_arm(o);
	}
	if (verdict != SECCOMP_RET_ALLOW) {
		if (!observe_unix_socket(o, n)) {
			observe_refuse(o, n, verdict);
		}
	} else if (c == NULL || (!o->armed && c->family != CALL_EXEC)) {
		(void)notify_continue(o->listener, n);
	} else {
		if (c->family != CALL_EXEC) {
			observe_look_files(o, n);
		}
		dispatch_call(o, n, c);
	}
}
