/* observe_calls.c - one call that waits: what it asks for, and what it is told. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "observe/observe_calls.h"
#include "base/own.h"
#include "os/clock.h"
#include "os/notify.h"
#include "policy/path.h"

static const struct call CALLS[] = {
	{ SYS_openat, CALL_OPEN, OP_OPEN, 0, 1, 2, false, NO_ARG, NO_ARG, O_NOFOLLOW },
#ifdef SYS_open
	{ SYS_open, CALL_OPEN, OP_OPEN, NO_ARG, 0, 1, false, NO_ARG, NO_ARG, O_NOFOLLOW },
	{ SYS_creat, CALL_OPEN, OP_OPEN, NO_ARG, 0, NO_ARG, false, NO_ARG, NO_ARG, 0 },
	{ SYS_unlink, CALL_CHANGE, OP_UNLINK, NO_ARG, 0, NO_ARG, false, NO_ARG, NO_ARG,
	  NEVER_FOLLOWED },
	{ SYS_rmdir, CALL_CHANGE, OP_RMDIR, NO_ARG, 0, NO_ARG, false, NO_ARG, NO_ARG,
	  NEVER_FOLLOWED },
	{ SYS_mkdir, CALL_CHANGE, OP_MKDIR, NO_ARG, 0, NO_ARG, true, NO_ARG, NO_ARG,
	  NEVER_FOLLOWED },
	{ SYS_mknod, CALL_CHANGE, OP_MKNOD, NO_ARG, 0, NO_ARG, true, NO_ARG, NO_ARG,
	  NEVER_FOLLOWED },
	{ SYS_symlink, CALL_CHANGE, OP_SYMLINK, NO_ARG, 1, NO_ARG, true, NO_ARG, 0,
	  NEVER_FOLLOWED },
	{ SYS_chmod, CALL_CHANGE, OP_CHMOD, NO_ARG, 0, NO_ARG, false, NO_ARG, NO_ARG, 0 },
	{ SYS_chown, CALL_CHANGE, OP_CHOWN, NO_ARG, 0, NO_ARG, false, NO_ARG, NO_ARG, 0 },
	{ SYS_lchown, CALL_CHANGE, OP_CHOWN, NO_ARG, 0, NO_ARG, false, NO_ARG, NO_ARG,
	  ONLY_ENTERED },
	{ SYS_rename, CALL_TWO, OP_RENAME, NO_ARG, 0, NO_ARG, false, NO_ARG, 1, NEVER_FOLLOWED },
	{ SYS_link, CALL_TWO, OP_LINK, NO_ARG, 0, NO_ARG, false, NO_ARG, 1, NEVER_FOLLOWED },
#endif
	{ SYS_unlinkat, CALL_CHANGE, OP_UNLINK, 0, 1, NO_ARG, false, NO_ARG, NO_ARG,
	  NEVER_FOLLOWED },
	{ SYS_mkdirat, CALL_CHANGE, OP_MKDIR, 0, 1, NO_ARG, true, NO_ARG, NO_ARG, NEVER_FOLLOWED },
	{ SYS_mknodat, CALL_CHANGE, OP_MKNOD, 0, 1, NO_ARG, true, NO_ARG, NO_ARG, NEVER_FOLLOWED },
	{ SYS_symlinkat, CALL_CHANGE, OP_SYMLINK, 1, 2, NO_ARG, true, NO_ARG, 0, NEVER_FOLLOWED },
	{ SYS_fchmodat, CALL_CHANGE, OP_CHMOD, 0, 1, NO_ARG, false, NO_ARG, NO_ARG, 0 },
	{ 452 /* fchmodat2 */, CALL_CHANGE, OP_CHMOD, 0, 1, 3, false, NO_ARG, NO_ARG,
	  AT_SYMLINK_NOFOLLOW },
	{ SYS_fchownat, CALL_CHANGE, OP_CHOWN, 0, 1, 4, false, NO_ARG, NO_ARG,
	  AT_SYMLINK_NOFOLLOW },
	{ SYS_truncate, CALL_CHANGE, OP_TRUNCATE, NO_ARG, 0, NO_ARG, false, NO_ARG, NO_ARG, 0 },
	{ SYS_setxattr, CALL_CHANGE, OP_SETXATTR, NO_ARG, 0, NO_ARG, false, NO_ARG, 1, 0 },
	{ SYS_lsetxattr, CALL_CHANGE, OP_SETXATTR, NO_ARG, 0, NO_ARG, false, NO_ARG, 1,
	  ONLY_ENTERED },
	{ 463 /* setxattrat */, CALL_CHANGE, OP_SETXATTR, 0, 1, 2, false, NO_ARG, 3,
	  AT_SYMLINK_NOFOLLOW },
	{ SYS_removexattr, CALL_CHANGE, OP_REMOVEXATTR, NO_ARG, 0, NO_ARG, false, NO_ARG, 1, 0 },
	{ SYS_lremovexattr, CALL_CHANGE, OP_REMOVEXATTR, NO_ARG, 0, NO_ARG, false, NO_ARG, 1,
	  ONLY_ENTERED },
	{ 466 /* removexattrat */, CALL_CHANGE, OP_REMOVEXATTR, 0, 1, 2, false, NO_ARG, 3,
	  AT_SYMLINK_NOFOLLOW },
	{ SYS_renameat, CALL_TWO, OP_RENAME, 0, 1, NO_ARG, false, 2, 3, NEVER_FOLLOWED },
	{ SYS_renameat2, CALL_TWO, OP_RENAME, 0, 1, 4, false, 2, 3, NEVER_FOLLOWED },
	{ SYS_linkat, CALL_TWO, OP_LINK, 0, 1, 4, false, 2, 3, NEVER_FOLLOWED },
	{ SYS_fchmod, CALL_FD, OP_CHMOD, NO_ARG, 0, NO_ARG, false, NO_ARG, NO_ARG, 0 },
	{ SYS_fchown, CALL_FD, OP_CHOWN, NO_ARG, 0, NO_ARG, false, NO_ARG, NO_ARG, 0 },
	{ SYS_ftruncate, CALL_FD, OP_TRUNCATE, NO_ARG, 0, NO_ARG, false, NO_ARG, NO_ARG, 0 },
	{ SYS_fsetxattr, CALL_FD, OP_SETXATTR, NO_ARG, 0, NO_ARG, false, NO_ARG, 1, 0 },
	{ SYS_fremovexattr, CALL_FD, OP_REMOVEXATTR, NO_ARG, 0, NO_ARG, false, NO_ARG, 1, 0 },
	{ SYS_connect, CALL_NETWORK, OP_CONNECT, 0, 0, 0, false, 0, 0, 0 },
	{ SYS_bind, CALL_NETWORK, OP_BIND, 0, 0, 0, false, 0, 0, 0 },
	{ SYS_sendto, CALL_NETWORK, OP_SEND, 0, 0, 0, false, 0, 0, 0 },
	{ SYS_sendmsg, CALL_NETWORK, OP_SEND, 0, 0, 0, false, 0, 0, 0 },
	{ SYS_sendmmsg, CALL_NETWORK, OP_SEND, 0, 0, 0, false, 0, 0, 0 },
	{ SYS_execve, CALL_EXEC, OP_EXEC, NO_ARG, 0, NO_ARG, false, NO_ARG, 1, 0 },
	{ SYS_execveat, CALL_EXEC, OP_EXEC, 0, 1, 4, false, NO_ARG, 2, AT_SYMLINK_NOFOLLOW },
	{ SYS_kill, CALL_SIGNAL, OP_SIGNAL, 0, 1, 0, false, 0, 0, 0 },
	{ SYS_tkill, CALL_SIGNAL, OP_SIGNAL, 0, 1, 0, false, 0, 0, 0 },
	{ SYS_tgkill, CALL_SIGNAL, OP_SIGNAL, 0, 2, 0, false, 0, 0, 0 },
	{ SYS_rt_sigqueueinfo, CALL_SIGNAL, OP_SIGNAL, 0, 1, 0, false, 0, 0, 0 },
	{ SYS_rt_tgsigqueueinfo, CALL_SIGNAL, OP_SIGNAL, 0, 2, 0, false, 0, 0, 0 },
	{ SYS_pidfd_send_signal, CALL_SIGNAL, OP_SIGNAL, NO_ARG, 1, 0, false, 0, 0, 0 },
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
	if (o->setup.trace == NULL || (o->setup.plan->audit == AUDIT_VIOLATIONS && !e->violation)) {
		return;
	}
	const struct process *p = observe_process(o, n);
	e->pid = p->pid;
	e->ppid = p->ppid;
	e->program = text(p->program);
	if (o->threaded) {
		e->at_us = clock_us();
		observe_queue_put(&o->queue, e);
	} else {
		trace_add(o->setup.trace, e);
	}
}

/* ---- files ------------------------------------------------------------- */

int observe_dir(const struct seccomp_notif *n, int at)
{
	return at == NO_ARG ? AT_FDCWD : (int)n->data.args[at];
}

static enum last_link last_of(const struct seccomp_notif *n, const struct call *c)
{
	if (c->nofollow < 0) {
		return c->nofollow == ONLY_ENTERED ? LAST_ENTERED : LAST_ITSELF;
	}
	return c->flags == NO_ARG || ((int)n->data.args[c->flags] & c->nofollow) == 0
	               ? LAST_FOLLOWED
	               : LAST_ENTERED;
}

struct path_argument observe_argument(const struct seccomp_notif *n, const struct call *c)
{
	/* The flags of open() are others. */
	bool at_flags = c->flags != NO_ARG && c->family != CALL_OPEN;

	return (struct path_argument){
		.dir = observe_dir(n, c->dir),
		.path = c->path,
		.last = last_of(n, c),
		.empty = at_flags && ((int)n->data.args[c->flags] & AT_EMPTY_PATH) != 0,
	};
}

static bool ends_inside(const char *path)
{
	size_t n = strlen(path);

	n -= n > 1 && path[n - 1] == '.';
	return n > 0 && path[n - 1] == '/';
}

/* An empty path leads nowhere, unless the call takes it for its directory. */
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
                  struct looked *ret)
{
	if (notify_read_string((pid_t)n->pid, n->data.args[a->path], ret->raw, sizeof(ret->raw)) <
	    0) {
		return false;
	}
	/* Who asks is asked before it can go away. */
	(void)observe_process(o, n);
	if (ret->raw[0] == '\0') {
		look_empty(o, n, a, &ret->at);
	} else {
		bool follow = a->last == LAST_FOLLOWED ||
		              (a->last == LAST_ENTERED && ends_inside(ret->raw));
		observe_resolve(o, n, a->dir, ret->raw, follow, &ret->at);
	}
	errno = EMFILE; /* of the supervisor */
	return !o->starved;
}

/* Of an empty path the kernel says ENOENT, whatever is to be done there. */
static bool is_nowhere(const struct looked *l)
{
	return l->at.path[0] == '\0';
}

void observe_unreadable(struct observer *o, const struct seccomp_notif *n, const struct call *c)
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

	/* The kernel might be able to read it: what cannot be told is not done. */
	if (notify_valid(o->listener, n)) {
		(void)observe_process(o, n);
		notify_refuse(o->listener, n, e.error);
		observe_tell(o, n, &e);
	}
}

bool observe_answer(struct observer *o, const struct seccomp_notif *n, const struct looked *l,
                    struct event *e)
{
	const struct judgement *j = &l->says;

	/* Who can be told to go on was there all the time. A refusal is told of also
	 * if its caller goes away while we answer: that is asked before. */
	if (!(j->allowed ? notify_continue(o->listener, n) : notify_valid(o->listener, n))) {
		return false;
	}
	if (j->allowed) {
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
	return true;
}

static enum mode open_mode(int flags, bool exists, bool *ret_write)
{
	bool make = (flags & O_CREAT) != 0 && !exists;
	bool temporary = (flags & O_TMPFILE) == O_TMPFILE;
	bool change = (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0;

	*ret_write = (flags & O_PATH) == 0 && (make || change || temporary);
	if (!*ret_write) {
		return MODE_READ;
	}
	if (make || temporary) {
		return MODE_CREATE;
	}
	return (flags & O_APPEND) != 0         ? MODE_APPEND
	       : (flags & O_ACCMODE) == O_RDWR ? MODE_READ_WRITE
	                                       : MODE_WRITE;
}

/* ps reads the environment of every process, to show it with `ps e`, also where it may not.
 * The first process has none. */
static bool is_ps(const struct process *p, const char *path)
{
	return strcmp(p->program, "/usr/bin/ps") == 0 &&
	       (strcmp(path, "/proc/1/environ") == 0 ||
	        strcmp(path, "/proc/1/task/1/environ") == 0);
}

/* In a git directory: what git writes when a branch is removed (settings), when it cleans up
 * (lists for servers), when it rebases (a state), or first of all, where none is and none can be
 * made. Never a hook, of whichever repository. */
static bool is_upkeep(const char *path)
{
	static const char *const NAMES[] = {
		"config",       "config.lock",  "info",      "packed-refs",
		"rebase-merge", "rebase-apply", "sequencer", "description",
		"branches",     "HEAD",         "HEAD.lock", "refs",
	};
	static const char git[] = ".git/", worktrees[] = "worktrees/";
	const char *first = strstr(path, git);
	const char *in = first;

	if (first == NULL || strstr(first, "/hooks/") != NULL ||
	    strcmp(path_base(path), "hooks") == 0) {
		return false;
	}
	for (const char *at = first; at != NULL; at = strstr(in, git)) {
		in = at + sizeof(git) - 1;
	}
	if (strncmp(in, worktrees, sizeof(worktrees) - 1) == 0) {
		in += sizeof(worktrees) - 1;
		in += strcspn(in, "/");
		in += *in == '/';
	}
	size_t i = 0;
	while (i < ARRAY_LEN(NAMES) && path_beneath(in, NAMES[i]) == NULL) {
		i++;
	}
	return i < ARRAY_LEN(NAMES);
}

bool observe_is_git(const char *program)
{
	static const char *const PROGRAMS[] = { "/usr/bin/git", "/usr/lib/git-core/",
		                                "/usr/libexec/git-core/" };
	bool git = false;

	for (size_t i = 0; i < ARRAY_LEN(PROGRAMS); i++) {
		git |= strncmp(program, PROGRAMS[i], strlen(PROGRAMS[i])) == 0;
	}
	return git;
}

/* Such work of git's, at both ends of a rename, is refused and told all the same. The program's
 * name is no proof of what it does: it takes away the alarm, and nothing else. */
static void calm_git(struct observer *o, const struct seccomp_notif *n, const char *from,
                     const char *to, struct judgement *j)
{
	if (!j->violation || j->reason != REASON_PROTECTED || !is_upkeep(from) || !is_upkeep(to)) {
		return;
	}
	j->violation = !observe_is_git(observe_process(o, n)->program);
}

static void see_open(struct observer *o, const struct seccomp_notif *n, const struct call *c)
{
	struct looked l;
	struct event e = { .op = c->op };
	int flags = c->flags == NO_ARG ? O_CREAT | O_WRONLY | O_TRUNC : (int)n->data.args[c->flags];
	/* What is to be made anew is not made through a symlink. */
	bool anew = (flags & (O_CREAT | O_EXCL | O_PATH)) == (O_CREAT | O_EXCL);
	bool write;

	struct path_argument a = observe_argument(n, c);
	a.last = anew ? LAST_ITSELF : a.last;
	if (!observe_look(o, n, &a, &l)) {
		observe_unreadable(o, n, c);
		return;
	}
	e.mode = open_mode(flags, l.at.exists, &write);
	e.kind = write ? EV_FILE_WRITE : EV_FILE_READ;
	observe_judge(o, n, &l.at, write, &l.says);
	if (write && !l.at.exists) {
		observe_judge_entry(o, l.at.path, &l.says);
	}
	if (l.says.violation && !write && is_ps(observe_process(o, n), l.at.path)) {
		l.says.violation = false; /* refused all the same */
	}
	calm_git(o, n, l.at.path, l.at.path, &l.says);
	if (!observe_answer(o, n, &l, &e)) {
		return;
	}
	if (l.says.allowed && (!write || is_nowhere(&l)) && !l.at.exists) {
		e.status = STATUS_ABSENT;
	}
	observe_tell(o, n, &e);
}

/* What a symlink is to say, or the name of an attribute, where the call has one. False: it cannot
 * be read. */
static bool read_text(const struct seccomp_notif *n, const struct call *c, char out[PATH_MAX],
                      struct event *e)
{
	ssize_t len = c->path2 == NO_ARG ? 0
	                                 : notify_read_string((pid_t)n->pid, n->data.args[c->path2],
	                                                      out, PATH_MAX);

	if (c->path2 != NO_ARG && len >= 0) {
		*(c->makes ? &e->leads_to : &e->attribute) = (struct bytes){ out, (size_t)len };
	}
	return len >= 0;
}

/* Of mknod(): the mode stands behind the path. */
static bool makes_special(const struct seccomp_notif *n, const struct call *c)
{
	mode_t type = (mode_t)n->data.args[c->path + 1] & S_IFMT;

	return type == S_IFIFO || type == S_IFSOCK;
}

/* unlinkat() takes directories away as well. */
static enum op changes_by(const struct seccomp_notif *n, const struct call *c)
{
	return c->nr == SYS_unlinkat && ((int)n->data.args[2] & AT_REMOVEDIR) != 0 ? OP_RMDIR
	                                                                           : c->op;
}

static void see_change(struct observer *o, const struct seccomp_notif *n, const struct call *c)
{
	struct looked l;
	char said[PATH_MAX];
	struct event e = { .kind = EV_FILE_WRITE, .op = changes_by(n, c) };
	const struct path_argument a = observe_argument(n, c);

	if (!read_text(n, c, said, &e) || !observe_look(o, n, &a, &l)) {
		observe_unreadable(o, n, c);
		return;
	}
	/* What is there cannot be made, what is not cannot be changed: that is the
	 * kernel's answer, and no attempt outside of the plan if it may be seen. */
	bool made = c->makes && l.at.exists && !l.at.unseen &&
	            !(l.at.known && observe_is_placeholder(o, l.at.path));
	bool idle = made || is_nowhere(&l) || (!c->makes && !l.at.exists);
	observe_judge(o, n, &l.at, !idle, &l.says);
	if (!idle && c->op == OP_MKNOD && makes_special(n, c)) {
		observe_judge_special(o, &l.at, false, &l.says);
	}
	/* A directory that is granted is made, as the skill would have it. */
	if (c->nofollow == NEVER_FOLLOWED && c->op != OP_MKDIR) {
		observe_judge_entry(o, l.at.path, &l.says);
	}
	calm_git(o, n, l.at.path, l.at.path, &l.says);
	if (!observe_answer(o, n, &l, &e)) {
		return;
	}
	if (l.says.allowed && idle) {
		e.status = STATUS_ABSENT;
		e.reason = made ? REASON_EXISTS : REASON_NONE;
	}
	observe_tell(o, n, &e);
}

/* rename and link: both ends are changed; of a link the first is only read. To be exchanged both
 * have to be there. */
static void see_two(struct observer *o, const struct seccomp_notif *n, const struct call *c)
{
	struct looked from, to;
	struct event e = { .kind = EV_FILE_WRITE, .op = c->op };

	bool renames = c->op == OP_RENAME;
	unsigned flags = c->flags != NO_ARG ? (unsigned)n->data.args[c->flags] : 0;
	bool follow = (flags & AT_SYMLINK_FOLLOW) != 0;
	bool exchange = renames && (flags & RENAME_EXCHANGE) != 0;
	struct path_argument a = observe_argument(n, c);
	const struct path_argument b = { observe_dir(n, c->dir2), c->path2, LAST_ITSELF, false };
	a.last = renames ? LAST_ITSELF : follow ? LAST_FOLLOWED : LAST_ENTERED;
	a.empty = a.empty && !renames;
	e.mode = exchange ? MODE_EXCHANGE : MODE_NONE;
	if (!observe_look(o, n, &a, &from) || !observe_look(o, n, &b, &to)) {
		observe_unreadable(o, n, c);
		return;
	}
	bool changes = from.at.exists && (!exchange || to.at.exists);
	bool takes = renames && changes;
	observe_judge(o, n, &from.at, takes, &from.says);
	observe_judge(o, n, &to.at, changes, &to.says);
	/* The end that is outside of the plan is the one that decides. A line without a
	 * remedy is taken to be about its first. */
	if (from.says.allowed && !to.says.allowed) {
		bool own_text = to.says.remedy == to.says.text ||
		                (to.says.remedy == NULL && to.says.reason == REASON_OUTSIDE_PLAN);
		from.says = to.says;
		from.says.remedy = own_text ? from.says.text : to.says.remedy;
		observe_judge_entry(o, to.at.path, &from.says);
	} else if (takes) {
		observe_judge_entry(o, from.at.path, &from.says);
	}
	calm_git(o, n, from.at.path, to.at.path, &from.says);
	if (!observe_answer(o, n, &from, &e)) {
		return;
	}
	e.path2 = text(to.at.path);
	if (from.says.allowed && (!changes || is_nowhere(&to))) {
		e.status = STATUS_ABSENT;
	}
	observe_tell(o, n, &e);
}

static void see_fd(struct observer *o, const struct seccomp_notif *n, const struct call *c)
{
	struct looked l = { .raw = "" };
	char said[PATH_MAX];
	struct event e = { .kind = EV_FILE_WRITE, .op = c->op };

	/* Who asks is asked before it can go away. */
	(void)observe_process(o, n);
	observe_resolve_fd(o, n, (int)n->data.args[c->path], &l.at);
	errno = EMFILE; /* of the supervisor */
	if (o->starved || !read_text(n, c, said, &e)) {
		observe_unreadable(o, n, c);
		return;
	}
	observe_judge(o, n, &l.at, true, &l.says);
	bool there = observe_answer(o, n, &l, &e);
	e.raw = (struct bytes){ NULL, 0 };
	if (there && l.at.known) {
		observe_tell(o, n, &e); /* a pipe or memfd is nobody's file */
	}
}

/* ---- signals and refusals ---------------------------------------------- */

static void signal_members(struct json *j, void *arg)
{
	const int *v = arg;

	json_kint(j, "target", v[0]);
	json_kint(j, "signal", v[1]);
}

/* For people: which signal, and to whom kill(2) says that it goes. */
static struct bytes signal_words(const int v[2], char *out, size_t size)
{
	int n = v[0] > 0     ? snprintf(out, size, "signal %d to process %d", v[1], v[0])
	        : v[0] == 0  ? snprintf(out, size, "signal %d to its process group", v[1])
	        : v[0] == -1 ? snprintf(out, size, "signal %d to every process", v[1])
	                     : snprintf(out, size, "signal %d to the process group %lld", v[1],
	                                -(long long)v[0]);

	return (struct bytes){ out, (size_t)n };
}

static void see_signal(struct observer *o, const struct seccomp_notif *n, const struct call *c)
{
	int whom = (int)n->data.args[0];
	int v[2] = { c->dir == NO_ARG     ? observe_pidfd((pid_t)n->pid, whom)
		     : c->nr == SYS_tkill ? observe_leader(o, whom)
		                          : whom,
		     (int)n->data.args[c->path] };
	char words[80];
	struct event e = { .kind = EV_SYSCALL_FILTERED,
		           .status = STATUS_ASKED,
		           .message = signal_words(v, words, sizeof(words)),
		           .op = c->op,
		           .more = signal_members,
		           .more_arg = v,
		           .more_size = sizeof(v),
		           .apart = (uint64_t)(uint32_t)v[0] << 32 | (uint32_t)v[1] };
	pid_t self = observe_process(o, n)->pid;

	/* To itself, or only to ask whether somebody is there: not to others. */
	if (notify_continue(o->listener, n) && v[1] != 0 && v[0] != self) {
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
	if (seccomp_call_name(&n->data)[0] == '\0') {
		json_kuint(j, "number", (uint32_t)n->data.nr);
	}
}

/* What libc and runtimes ask for every day, and do without: nscd, the list of
 * interfaces, TCP by many ways, and what an older kernel would not have either. */
static bool is_everyday(const struct seccomp_data *call, int error)
{
	uint32_t family = (uint32_t)call->args[0];
	bool many_ways = (uint32_t)call->args[2] == IPPROTO_MPTCP && error == EPROTONOSUPPORT;

	return error == ENOSYS ||
	       (call->nr == SYS_socket && (family == AF_UNIX || family == AF_NETLINK || many_ways));
}

/* The arguments by which calls of one name differ; of another ABI none has a name. */
static uint64_t apart(const struct seccomp_data *call, bool foreign)
{
	if (foreign) {
		return (uint32_t)call->nr | (uint64_t)call->arch << 32;
	}
	if (call->nr == SYS_socket || call->nr == SYS_socketpair) {
		return (uint32_t)call->args[0] | (call->args[1] & 0xff) << 32 |
		       (call->args[2] & 0xffff) << 40;
	}
	return call->nr == SYS_ioctl || call->nr == SYS_prctl || call->nr == SYS_ptrace
	               ? call->args[call->nr == SYS_ioctl] & UINT32_MAX
	               : 0;
}

/* The owner's smallest step that would let the call through; NULL: none does. */
static const char *refusal_remedy(const struct observer *o, const struct seccomp_data *call)
{
	static const struct {
		enum seccomp_profile profile;
		const char *alone;
		const char *with_unix;
	} STEPS[] = {
		{ SECCOMP_PROFILE_DEFAULT, "--profile default",
		  "both --profile default and --unix-sockets" },
		{ SECCOMP_PROFILE_PERMISSIVE, "--profile permissive",
		  "both --profile permissive and --unix-sockets" },
	};
	/* Of the same order: see os/seccomp.h. */
	enum seccomp_profile now = (enum seccomp_profile)o->setup.plan->profile;
	bool unix_now =
	        o->setup.filter == seccomp_blob(now, true, true) || observe_unix_own(o, call);
	/* What the plan has and the machine has not is brought by no option. */
	bool unix_more = unix_now || !o->setup.plan->unix_sockets;

	if (seccomp_eval(seccomp_blob(now, unix_more, true), call) == SECCOMP_RET_ALLOW) {
		return "--unix-sockets";
	}
	for (size_t i = 0; i < ARRAY_LEN(STEPS); i++) {
		enum seccomp_profile p = STEPS[i].profile;
		if (seccomp_eval(seccomp_blob(p, unix_now, true), call) == SECCOMP_RET_ALLOW) {
			return STEPS[i].alone;
		}
		if (seccomp_eval(seccomp_blob(p, unix_more, true), call) == SECCOMP_RET_ALLOW) {
			return STEPS[i].with_unix;
		}
	}
	return NULL;
}

/* Ends the whole process of a caller that waits. A number would not do: the process may be
 * gone, and another have it, before a signal is sent. */
static bool end_process(const struct observer *o, const struct seccomp_notif *n, pid_t leader)
{
	auto_fd process = leader > 0 ? (int)syscall(SYS_pidfd_open, leader, 0) : -1;

	return process >= 0 && notify_valid(o->listener, n) &&
	       syscall(SYS_pidfd_send_signal, process, SIGKILL, NULL, 0) == 0;
}

/* A call that the profile does not have. Never let go on. */
static void see_refused(struct observer *o, struct seccomp_notif *n, uint32_t verdict)
{
	const struct process *caller = observe_process(o, n);
	bool kill_it = (verdict & SECCOMP_RET_ACTION_FULL) != SECCOMP_RET_ERRNO;
	const char *name = seccomp_call_name(&n->data);
	bool socket = n->data.nr == SYS_socket;
	/* Who is killed gets no error, and none is told. */
	int error = kill_it ? 0 : (int)(verdict & SECCOMP_RET_DATA);
	struct event e = { .kind = EV_SYSCALL_BLOCKED,
		           .status = STATUS_DENIED,
		           .violation = kill_it || !is_everyday(&n->data, error),
		           .op = name[0] != '\0' ? op_from(name) : OP_FOREIGN_ABI,
		           .call = name[0] != '\0' ? name : NULL,
		           .rule = profile_name(o->setup.plan->profile),
		           .reason = kill_it ? REASON_ATTACK
		                     : socket && o->setup.plan->profile == PROFILE_STRICT
		                             ? REASON_NO_NETWORK
		                             : REASON_PROFILE,
		           .remedy = kill_it ? NULL : refusal_remedy(o, &n->data),
		           .error = error,
		           .more = call_members,
		           .more_arg = n,
		           .more_size = sizeof(*n),
		           .apart = apart(&n->data, name[0] == '\0') };

	if (kill_it && end_process(o, n, caller->leader)) {
		o->killed_first = o->killed_first || caller->leader == o->first;
	}
	notify_refuse(o->listener, n, kill_it ? EPERM : error);
	/* Before its execve the first process tries what must not work. */
	if (o->armed) {
		observe_tell(o, n, &e);
	}
}

/* The kernel closes the pipe when an execve of the first process works. */
static bool pipe_is_closed(const struct observer *o)
{
	struct pollfd p = { .fd = *o->setup.exec_pipe, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

/* Is this the skill, or still our own search through PATH? After an execve that fails we make
 * no call that is asked about but the next one. */
static bool is_skill(const struct observer *o, const struct seccomp_notif *n)
{
	bool searches = n->data.nr == SYS_execve && (pid_t)n->pid == o->first;

	return o->exec.goes_on && (!searches || pipe_is_closed(o));
}

void observe_call(struct observer *o, struct seccomp_notif *n)
{
	uint32_t verdict = seccomp_eval(o->setup.filter, &n->data);
	const struct call *c = call_of(n->data.nr);

	if (!o->armed && is_skill(o, n)) {
		observe_arm(o);
	}
	if (verdict != SECCOMP_RET_ALLOW) {
		if (!observe_unix_socket(o, n)) {
			see_refused(o, n, verdict);
		}
		return;
	}
	if (c == NULL || (!o->armed && c->family != CALL_EXEC)) {
		(void)notify_continue(o->listener, n);
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
		observe_exec(o, n, c);
		break;
	case CALL_SIGNAL:
		see_signal(o, n, c);
		break;
	}
}
