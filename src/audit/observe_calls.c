/* observe_calls.c - one call that waits: what it asks for, and what it is told. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "audit/observe.h"
#include "base/own.h"
#include "os/clock.h"
#include "os/notify.h"

#define NO_ARG (-1)

enum family { CALL_OPEN, CALL_CHANGE, CALL_TWO, CALL_FD, CALL_NETWORK, CALL_EXEC, CALL_SIGNAL };

/* Where a call has its arguments. */
struct call {
	int nr;
	enum family family;
	const char *op;
	int dir; /* NO_ARG: the working directory */
	int path;
	int flags;  /* open flags, or AT_* */
	bool makes; /* the path is not there before */
	int dir2;
	int path2;
	int nofollow; /* the bit in `flags` by which a last symlink is not followed; -1: never is */
};

#define NEVER_FOLLOWED (-1)

static const struct call CALLS[] = {
	{ SYS_openat, CALL_OPEN, "open", 0, 1, 2, false, NO_ARG, NO_ARG, O_NOFOLLOW },
#ifdef SYS_open
	{ SYS_open, CALL_OPEN, "open", NO_ARG, 0, 1, false, NO_ARG, NO_ARG, O_NOFOLLOW },
	{ SYS_creat, CALL_OPEN, "open", NO_ARG, 0, NO_ARG, false, NO_ARG, NO_ARG, 0 },
	{ SYS_unlink, CALL_CHANGE, "unlink", NO_ARG, 0, NO_ARG, false, NO_ARG, NO_ARG,
	  NEVER_FOLLOWED },
	{ SYS_rmdir, CALL_CHANGE, "rmdir", NO_ARG, 0, NO_ARG, false, NO_ARG, NO_ARG,
	  NEVER_FOLLOWED },
	{ SYS_mkdir, CALL_CHANGE, "mkdir", NO_ARG, 0, NO_ARG, true, NO_ARG, NO_ARG,
	  NEVER_FOLLOWED },
	{ SYS_mknod, CALL_CHANGE, "mknod", NO_ARG, 0, NO_ARG, true, NO_ARG, NO_ARG,
	  NEVER_FOLLOWED },
	{ SYS_symlink, CALL_CHANGE, "symlink", NO_ARG, 1, NO_ARG, true, NO_ARG, NO_ARG,
	  NEVER_FOLLOWED },
	{ SYS_chmod, CALL_CHANGE, "chmod", NO_ARG, 0, NO_ARG, false, NO_ARG, NO_ARG, 0 },
	{ SYS_chown, CALL_CHANGE, "chown", NO_ARG, 0, NO_ARG, false, NO_ARG, NO_ARG, 0 },
	{ SYS_lchown, CALL_CHANGE, "chown", NO_ARG, 0, NO_ARG, false, NO_ARG, NO_ARG,
	  NEVER_FOLLOWED },
	{ SYS_rename, CALL_TWO, "rename", NO_ARG, 0, NO_ARG, false, NO_ARG, 1, NEVER_FOLLOWED },
	{ SYS_link, CALL_TWO, "link", NO_ARG, 0, NO_ARG, false, NO_ARG, 1, NEVER_FOLLOWED },
#endif
	{ SYS_unlinkat, CALL_CHANGE, "unlink", 0, 1, NO_ARG, false, NO_ARG, NO_ARG,
	  NEVER_FOLLOWED },
	{ SYS_mkdirat, CALL_CHANGE, "mkdir", 0, 1, NO_ARG, true, NO_ARG, NO_ARG, NEVER_FOLLOWED },
	{ SYS_mknodat, CALL_CHANGE, "mknod", 0, 1, NO_ARG, true, NO_ARG, NO_ARG, NEVER_FOLLOWED },
	{ SYS_symlinkat, CALL_CHANGE, "symlink", 1, 2, NO_ARG, true, NO_ARG, NO_ARG,
	  NEVER_FOLLOWED },
	{ SYS_fchmodat, CALL_CHANGE, "chmod", 0, 1, NO_ARG, false, NO_ARG, NO_ARG, 0 },
	{ 452 /* fchmodat2 */, CALL_CHANGE, "chmod", 0, 1, 3, false, NO_ARG, NO_ARG,
	  AT_SYMLINK_NOFOLLOW },
	{ SYS_fchownat, CALL_CHANGE, "chown", 0, 1, 4, false, NO_ARG, NO_ARG, AT_SYMLINK_NOFOLLOW },
	{ SYS_truncate, CALL_CHANGE, "truncate", NO_ARG, 0, NO_ARG, false, NO_ARG, NO_ARG, 0 },
	{ SYS_renameat, CALL_TWO, "rename", 0, 1, NO_ARG, false, 2, 3, NEVER_FOLLOWED },
	{ SYS_renameat2, CALL_TWO, "rename", 0, 1, NO_ARG, false, 2, 3, NEVER_FOLLOWED },
	{ SYS_linkat, CALL_TWO, "link", 0, 1, NO_ARG, false, 2, 3, NEVER_FOLLOWED },
	{ SYS_fchmod, CALL_FD, "chmod", NO_ARG, 0, NO_ARG, false, NO_ARG, NO_ARG, 0 },
	{ SYS_fchown, CALL_FD, "chown", NO_ARG, 0, NO_ARG, false, NO_ARG, NO_ARG, 0 },
	{ SYS_ftruncate, CALL_FD, "truncate", NO_ARG, 0, NO_ARG, false, NO_ARG, NO_ARG, 0 },
	{ SYS_connect, CALL_NETWORK, "connect", 0, 0, 0, false, 0, 0, 0 },
	{ SYS_sendto, CALL_NETWORK, "send", 0, 0, 0, false, 0, 0, 0 },
	{ SYS_sendmsg, CALL_NETWORK, "send", 0, 0, 0, false, 0, 0, 0 },
	{ SYS_sendmmsg, CALL_NETWORK, "send", 0, 0, 0, false, 0, 0, 0 },
	{ SYS_execve, CALL_EXEC, "exec", NO_ARG, 0, NO_ARG, false, NO_ARG, 1, 0 },
	{ SYS_execveat, CALL_EXEC, "exec", 0, 1, 4, false, NO_ARG, 2, AT_SYMLINK_NOFOLLOW },
	{ SYS_kill, CALL_SIGNAL, "signal", 0, 1, 0, false, 0, 0, 0 },
	{ SYS_tkill, CALL_SIGNAL, "signal", 0, 1, 0, false, 0, 0, 0 },
	{ SYS_tgkill, CALL_SIGNAL, "signal", 0, 2, 0, false, 0, 0, 0 },
	{ SYS_rt_sigqueueinfo, CALL_SIGNAL, "signal", 0, 1, 0, false, 0, 0, 0 },
	{ SYS_rt_tgsigqueueinfo, CALL_SIGNAL, "signal", 0, 2, 0, false, 0, 0, 0 },
	{ SYS_pidfd_send_signal, CALL_SIGNAL, "signal", NO_ARG, 1, 0, false, 0, 0, 0 },
};

static const struct call *call_of(int nr)
{
	for (size_t i = 0; i < ARRAY_LEN(CALLS); i++) {
		if (CALLS[i].nr == nr) {
			return &CALLS[i];
		}
	}
	return NULL;
}

static struct bytes text(const char *s)
{
	return (struct bytes){ s, strlen(s) };
}

void observe_tell(struct observer *o, const struct seccomp_notif *n, struct event *e)
{
	if (o->setup.trace == NULL || !o->armed ||
	    (o->setup.plan->audit == AUDIT_VIOLATIONS && !e->violation)) {
		return;
	}
	const struct process *p = observe_process(o, (pid_t)n->pid);
	e->pid = p->pid;
	e->ppid = p->ppid;
	e->program = text(p->program);
	if (o->threaded) {
		e->at_us = clock_us();
		queue_put(&o->queue, e);
	} else {
		trace_add(o->setup.trace, e);
	}
}

/* ---- files ------------------------------------------------------------- */

static int arg_int(const struct seccomp_notif *n, int at)
{
	return at == NO_ARG ? AT_FDCWD : (int)n->data.args[at];
}

struct looked {
	char raw[PATH_MAX];
	struct resolved at;
	struct judgement says;
};

/* Reads and judges a path argument. False: it cannot be read, and the kernel
 * will say so. */
static bool look_at(struct observer *o, const struct seccomp_notif *n, int dir, int path,
                    bool follow, struct looked *ret)
{
	if (notify_read_string((pid_t)n->pid, n->data.args[path], ret->raw, sizeof(ret->raw)) < 0) {
		return false;
	}
	/* An empty path is the fd itself, or ENOENT. */
	if (ret->raw[0] == '\0') {
		observe_resolve_fd(o, (pid_t)n->pid, dir, &ret->at);
	} else {
		observe_resolve(o, (pid_t)n->pid, dir, ret->raw, follow, &ret->at);
	}
	return true;
}

static void unreadable(struct observer *o, const struct seccomp_notif *n, const struct call *c)
{
	struct event e = {
		.kind = EV_FILE_READ, .status = STATUS_ASKED, .op = c->op, .reason = "unreadable"
	};

	notify_continue(o->listener, n);
	observe_tell(o, n, &e);
}

/* Says what is decided to the program, then to the trace. */
static void answer(struct observer *o, const struct seccomp_notif *n, const struct looked *l,
                   struct event *e)
{
	const struct judgement *j = &l->says;

	if (j->allowed) {
		notify_continue(o->listener, n);
		e->status = STATUS_ASKED;
	} else {
		notify_refuse(o->listener, n, j->error);
		e->status = STATUS_DENIED;
		e->kind = EV_FILE_BLOCKED;
		e->error = j->error;
	}
	e->violation = j->violation;
	e->path = text(l->at.path);
	if (strcmp(l->raw, l->at.path) != 0) {
		e->raw = text(l->raw);
	}
	e->rule = j->rule;
	e->reason = j->reason;
	e->remedy = j->remedy;
}

static const char *open_mode(int flags, bool exists, bool *ret_write)
{
	bool make = (flags & O_CREAT) != 0 && !exists;
	bool temporary = (flags & O_TMPFILE) == O_TMPFILE;
	bool change = (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0;

	*ret_write = (flags & O_PATH) == 0 && (make || change || temporary);
	if (!*ret_write) {
		return "read";
	}
	if (make || temporary) {
		return "create";
	}
	return (flags & O_APPEND) != 0         ? "append"
	       : (flags & O_ACCMODE) == O_RDWR ? "read+write"
	                                       : "write";
}

/* ps and its kin look at everybody, also where they may not. */
static bool is_lister(const char *program)
{
	static const char *const NAMES[] = { "ps", "top", "htop", "pgrep", "pkill", "w" };
	const char *slash = strrchr(program, '/');

	for (size_t i = 0; slash != NULL && i < ARRAY_LEN(NAMES); i++) {
		if (strcmp(slash + 1, NAMES[i]) == 0) {
			return true;
		}
	}
	return false;
}

static void see_open(struct observer *o, const struct seccomp_notif *n, const struct call *c)
{
	struct looked l;
	struct event e = { .op = c->op };
	int flags = c->flags == NO_ARG ? O_CREAT | O_WRONLY | O_TRUNC : (int)n->data.args[c->flags];
	bool write;

	if (!look_at(o, n, arg_int(n, c->dir), c->path, (flags & c->nofollow) == 0, &l)) {
		unreadable(o, n, c);
		return;
	}
	e.mode = open_mode(flags, l.at.exists, &write);
	e.kind = write ? EV_FILE_WRITE : EV_FILE_READ;
	observe_judge(o, &l.at, write, &l.says);
	if (l.says.violation && strcmp(l.says.reason, "other_process") == 0 &&
	    is_lister(observe_process(o, (pid_t)n->pid)->program)) {
		l.says.violation = false; /* refused all the same */
	}
	answer(o, n, &l, &e);
	if (l.says.allowed && !write && !l.at.exists) {
		e.status = STATUS_ABSENT;
	}
	observe_tell(o, n, &e);
}

static void see_change(struct observer *o, const struct seccomp_notif *n, const struct call *c)
{
	struct looked l;
	struct event e = { .kind = EV_FILE_WRITE, .op = c->op };
	bool follow = c->nofollow != NEVER_FOLLOWED &&
	              (c->flags == NO_ARG || ((int)n->data.args[c->flags] & c->nofollow) == 0);

	if (!look_at(o, n, arg_int(n, c->dir), c->path, follow, &l)) {
		unreadable(o, n, c);
		return;
	}
	/* What is there cannot be made, what is not cannot be changed: that is the
	 * kernel's answer, and no attempt outside of the plan if it may be seen. */
	bool idle = c->makes ? l.at.exists : !l.at.exists;
	observe_judge(o, &l.at, !idle, &l.says);
	answer(o, n, &l, &e);
	if (l.says.allowed && idle) {
		e.status = STATUS_ABSENT;
		e.reason = c->makes ? "exists" : NULL;
	}
	observe_tell(o, n, &e);
}

/* rename and link: both ends are changed; of a link the first is only read. */
static void see_two(struct observer *o, const struct seccomp_notif *n, const struct call *c)
{
	struct looked from, to;
	struct event e = { .kind = EV_FILE_WRITE, .op = c->op };

	if (!look_at(o, n, arg_int(n, c->dir), c->path, false, &from) ||
	    !look_at(o, n, arg_int(n, c->dir2), c->path2, false, &to)) {
		unreadable(o, n, c);
		return;
	}
	bool takes = strcmp(c->op, "rename") == 0 && from.at.exists;
	observe_judge(o, &from.at, takes, &from.says);
	observe_judge(o, &to.at, from.at.exists, &to.says);
	/* The end that is outside of the plan is the one to tell of. */
	bool second = from.says.allowed && !to.says.allowed;
	answer(o, n, second ? &to : &from, &e);
	if (second) {
		e.path2 = text(from.at.path);
	} else {
		e.path2 = text(to.at.path);
	}
	if (from.says.allowed && to.says.allowed && !from.at.exists) {
		e.status = STATUS_ABSENT;
	}
	observe_tell(o, n, &e);
}

static void see_fd(struct observer *o, const struct seccomp_notif *n, const struct call *c)
{
	struct looked l = { .raw = "" };
	struct event e = { .kind = EV_FILE_WRITE, .op = c->op };

	observe_resolve_fd(o, (pid_t)n->pid, (int)n->data.args[c->path], &l.at);
	/* To have the fd is to have passed; the kernel knows what it is good for. */
	l.says = (struct judgement){ .allowed = true };
	answer(o, n, &l, &e);
	e.raw = (struct bytes){ NULL, 0 };
	if (l.at.known) {
		observe_tell(o, n, &e); /* a pipe or memfd is nobody's file */
	}
}

/* ---- programs ---------------------------------------------------------- */

struct arguments {
	struct bytes v[OBSERVE_ARGS];
	size_t n;
	bool cut;
	char bytes[OBSERVE_ARG_BYTES];
};

static void read_arguments(pid_t tid, uint64_t argv, struct arguments *ret)
{
	size_t used = 0;

	ret->n = 0;
	ret->cut = false;
	while (argv != 0) {
		uint64_t at;
		if (notify_read(tid, argv + ret->n * sizeof(at), &at, sizeof(at)) != sizeof(at) ||
		    at == 0) {
			return;
		}
		if (ret->n == OBSERVE_ARGS || used == sizeof(ret->bytes)) {
			ret->cut = true;
			return;
		}
		char *to = ret->bytes + used;
		size_t room = sizeof(ret->bytes) - used;
		ssize_t len = notify_read_string(tid, at, to, room);
		ret->cut = len < 0;
		if (len < 0) {
			len = errno == ENAMETOOLONG ? (ssize_t)room - 1 : 0;
		}
		ret->v[ret->n++] = (struct bytes){ to, (size_t)len };
		used += (size_t)len + 1;
		if (ret->cut) {
			return;
		}
	}
}

static void see_exec(struct observer *o, const struct seccomp_notif *n, const struct call *c)
{
	static struct arguments args;
	struct looked l;
	struct event e = { .kind = EV_PROCESS_SPAWNED, .op = c->op };

	if (!look_at(o, n, arg_int(n, c->dir), c->path, true, &l)) {
		unreadable(o, n, c);
		return;
	}
	if (!o->armed) {
		observe_first(o, (pid_t)n->pid);
	}
	/* Until it is found this is our own search through PATH. */
	o->armed = o->armed || l.at.exists;
	observe_judge(o, &l.at, false, &l.says);
	read_arguments((pid_t)n->pid, n->data.args[c->path2], &args);
	/* Who asks is asked before it is somebody else. */
	(void)observe_process(o, (pid_t)n->pid);
	answer(o, n, &l, &e);
	if (l.says.allowed && !l.at.exists) {
		e.status = STATUS_ABSENT;
	}
	e.args = args.v;
	e.n_args = args.n;
	e.args_cut = args.cut;
	observe_tell(o, n, &e);
	if (e.status == STATUS_ASKED) {
		observe_forget(o, (pid_t)n->pid);
	}
}

/* ---- signals and refusals ---------------------------------------------- */

static void signal_members(struct json *j, void *arg)
{
	const int *v = arg;

	json_kint(j, "target", v[0]);
	json_kint(j, "signal", v[1]);
}

static void see_signal(struct observer *o, const struct seccomp_notif *n, const struct call *c)
{
	int v[2] = { c->dir == NO_ARG ? 0 : (int)n->data.args[0], (int)n->data.args[c->path] };
	struct event e = { .kind = EV_SYSCALL_FILTERED,
		           .status = STATUS_ASKED,
		           .op = c->op,
		           .more = signal_members,
		           .more_arg = v,
		           .more_size = sizeof(v) };

	notify_continue(o->listener, n);
	/* To itself, or only to ask whether somebody is there: not to others. */
	if (v[1] != 0 && v[0] != observe_process(o, (pid_t)n->pid)->pid && v[0] != 0) {
		observe_tell(o, n, &e);
	}
}

static void call_members(struct json *j, void *arg)
{
	const struct seccomp_notif *n = arg;

	json_key(j, "arguments");
	json_open(j, '[');
	for (int i = 0; i < 4; i++) {
		char hex[24];
		snprintf(hex, sizeof(hex), "0x%llx", (unsigned long long)n->data.args[i]);
		json_str(j, hex);
	}
	json_close(j, ']');
}

/* A call that the profile does not have. Never let go on. */
static void see_refused(struct observer *o, struct seccomp_notif *n, uint32_t verdict)
{
	bool kill_it = (verdict & SECCOMP_RET_ACTION_FULL) != SECCOMP_RET_ERRNO;
	bool socket = n->data.nr == SYS_socket;
	uint32_t family = (uint32_t)n->data.args[0];
	int error = kill_it ? EPERM : (int)(verdict & SECCOMP_RET_DATA);
	struct event e = { .kind = EV_SYSCALL_BLOCKED,
		           .status = STATUS_DENIED,
		           /* libc asks nscd so, for every name of a user or host. */
		           .violation = !(socket && family == AF_UNIX),
		           .op = seccomp_call_name(n->data.nr),
		           .rule = profile_name(o->setup.plan->profile),
		           .reason = kill_it ? "attack"
		                     : socket && o->setup.plan->profile == PROFILE_STRICT
		                             ? "no_network"
		                             : "profile",
		           .error = error,
		           .more = call_members,
		           .more_arg = n,
		           .more_size = sizeof(*n) };
	pid_t leader = observe_process(o, (pid_t)n->pid)->leader;

	observe_tell(o, n, &e);
	if (kill_it && leader > 0 && notify_valid(o->listener, n)) {
		o->killed_first = o->killed_first || leader == o->first;
		(void)kill(leader, SIGKILL);
	}
	notify_refuse(o->listener, n, error);
}

void observe_call(struct observer *o, struct seccomp_notif *n)
{
	uint32_t verdict = seccomp_eval(o->setup.filter, &n->data);
	const struct call *c = call_of(n->data.nr);

	if (verdict != SECCOMP_RET_ALLOW) {
		see_refused(o, n, verdict);
		return;
	}
	if (c == NULL || (!o->armed && c->family != CALL_EXEC)) {
		notify_continue(o->listener, n);
		return;
	}
	switch (c->family) {
	case CALL_OPEN:
		see_open(o, n, c);
		break;
	case CALL_CHANGE:
		see_change(o, n, c);
		break;
	case CALL_TWO:
		see_two(o, n, c);
		break;
	case CALL_FD:
		see_fd(o, n, c);
		break;
	case CALL_NETWORK:
		observe_network(o, n);
		break;
	case CALL_EXEC:
		see_exec(o, n, c);
		break;
	case CALL_SIGNAL:
		see_signal(o, n, c);
		break;
	}
}
