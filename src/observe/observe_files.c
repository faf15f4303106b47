/* observe_files.c - handles calls that open, make, change, move or remove a file. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "observe/observe_calls.h"
#include "base/array.h"
#include "base/own.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/notify.h"
#include "policy/path.h"

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

/* Returns whether ps tries to read the environment of process 1, which is empty. ps tries to read
 * the environment of every process, even without its option "e", which shows it. */
static bool is_ps(const struct process *p, const char *path)
{
	return strcmp(p->program, "/usr/bin/ps") == 0 &&
	       (strcmp(path, "/proc/1/environ") == 0 ||
	        strcmp(path, "/proc/1/task/1/environ") == 0);
}

/* Returns whether the path is in a git directory and has a name that git itself writes: its
 * settings when it removes a branch, lists for servers when it cleans up, a state when it rebases,
 * and other names when it tries to make a repository where none can be made. A hook never
 * counts. */
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
	return ARRAY_HAS(name, NAMES, ARRAY_LEN(NAMES), path_beneath(in, *name) != NULL);
}

bool observe_is_git(const char *program)
{
	static const char *const PROGRAMS[] = { "/usr/bin/git", "/usr/lib/git-core/",
		                                "/usr/libexec/git-core/" };

	return ARRAY_HAS(e, PROGRAMS, ARRAY_LEN(PROGRAMS), strncmp(program, *e, strlen(*e)) == 0);
}

/* Clears j->violation for a refused write that git itself makes (is_upkeep()). The write is still
 * refused and recorded. If the call is a rename, both paths must be names that git writes. The
 * program's name does not prove what the program does, but here it only suppresses the alarm. */
static void calm_git(struct observer *o, const struct seccomp_notif *n, const char *from,
                     const char *to, struct judgement *j)
{
	if (!j->violation || j->reason != REASON_PROTECTED || !is_upkeep(from) || !is_upkeep(to)) {
		return;
	}
	j->violation = !observe_is_git(observe_process(o, n)->program);
}

static void see_open(struct observer *o, const struct seccomp_notif *n,
                     const struct observed_call *c)
{
	struct path_looked l;
	struct event e = { .op = c->op };
	int flags =
	        c->flags == NO_ARG ? O_CREAT | O_WRONLY | O_TRUNC : (int)observe_arg(n, c->flags);
	/* With O_EXCL, open() does not follow a symlink at the end. */
	bool exclusive = (flags & (O_CREAT | O_EXCL | O_PATH)) == (O_CREAT | O_EXCL);
	bool write;

	struct path_argument a = observe_argument(n, c);
	a.last = exclusive ? LAST_ITSELF : a.last;
	if (!observe_look(o, n, &a, &l)) {
		observe_unreadable(o, n, c);
		return;
	}
	e.mode = open_mode(flags, l.at.exists, &write);
	e.kind = write ? EV_FILE_WRITE : EV_FILE_READ;
	observe_judge(o, n, &l.at, write, &l.says);
	if (write && !l.at.exists) {
		observe_judge_entry(o, l.at.path, &l.says);
		observe_judge_missing(o, &l.at, (flags & O_CREAT) != 0, &e, &l.says);
	}
	if (l.says.violation && !write && is_ps(observe_process(o, n), l.at.path)) {
		l.says.violation = false; /* not a violation, but the call is still refused */
	}
	calm_git(o, n, l.at.path, l.at.path, &l.says);
	if (!observe_answer(o, n, &l, &e)) {
		return;
	}
	if (l.says.allowed && (!write || observe_is_nowhere(&l)) && !l.at.exists) {
		e.status = STATUS_ABSENT;
	}
	if (e.mode == MODE_CREATE && e.status == STATUS_ASKED && e.rule == RULE_PRIVATE) {
		observe_lost_made(o, l.at.path, l.raw);
	}
	observe_tell(o, n, &e);
}

/* Reads the target of a new symlink or the name of an attribute, if the call has one. Returns false
 * if it cannot be read. */
static bool read_text(const struct seccomp_notif *n, const struct observed_call *c,
                      char out[PATH_MAX], struct event *e)
{
	ssize_t len = c->text == NO_ARG ? 0
	                                : notify_read_string((pid_t)n->pid, observe_arg(n, c->text),
	                                                     out, PATH_MAX);

	if (c->text != NO_ARG && len >= 0) {
		*(c->makes ? &e->leads_to : &e->attribute) = (struct bytes){ out, (size_t)len };
	}
	return len >= 0;
}

/* Returns whether the mode, which is the argument after the path, is that of a FIFO or a socket. */
static bool makes_special(const struct seccomp_notif *n, const struct observed_call *c)
{
	mode_t type = (mode_t)observe_arg(n, c->path + 1) & S_IFMT;

	return type == S_IFIFO || type == S_IFSOCK;
}

/* Returns the operation of the call. unlinkat() with AT_REMOVEDIR removes a directory. */
static enum op change_op(const struct seccomp_notif *n, const struct observed_call *c)
{
	return c->nr == SYS_unlinkat && ((int)observe_arg(n, ARG2) & AT_REMOVEDIR) != 0 ? OP_RMDIR
	                                                                                : c->op;
}

/* Corrects the remedy of a call that would change a hidden file: it needs to write. */
static void ask_to_write(const char *path, struct judgement *j)
{
	if (j->reason == REASON_NOT_GRANTED) {
		snprintf(j->text, sizeof(j->text), "--write %s", path);
	}
}

/* A program that finds no room often deletes what it has written. The kernel has not executed that
 * call yet. The skill's root and its private places are one file system. */
static void look_at_disk(struct observer *o)
{
	uint64_t now = clock_ms();

	if (!o->disk_full && now != o->disk_ms) {
		o->disk_ms = now;
		o->disk_full = file_system_full(o->root);
	}
}

static void see_change(struct observer *o, const struct seccomp_notif *n,
                       const struct observed_call *c)
{
	struct path_looked l;
	char said[PATH_MAX];
	struct event e = { .kind = EV_FILE_WRITE, .op = change_op(n, c) };
	const struct path_argument a = observe_argument(n, c);

	if (!read_text(n, c, said, &e) || !observe_look(o, n, &a, &l)) {
		observe_unreadable(o, n, c);
		return;
	}
	/* A path that exists cannot be made, and a missing path cannot be changed: then the call
	 * fails in the kernel (`idle`), and it is not a violation if the skill may see the path. */
	bool made = c->makes && l.at.exists && !l.at.unseen &&
	            !(l.at.known && observe_is_placeholder(o, l.at.path));
	bool idle = made || observe_is_nowhere(&l) || (!c->makes && !l.at.exists);
	observe_judge(o, n, &l.at, !idle, &l.says);
	ask_to_write(l.at.path, &l.says);
	if (!idle && c->special && makes_special(n, c)) {
		observe_judge_special(o, &l.at, false, &l.says);
	}
	if (c->entry) {
		observe_judge_entry(o, l.at.path, &l.says);
	}
	if (!idle && c->makes) {
		observe_judge_missing(o, &l.at, true, &e, &l.says);
	} else if (!idle && c->entry) {
		observe_judge_mount(o, l.at.path, e.op, &l.says);
	}
	if (l.says.rule == RULE_PRIVATE) {
		look_at_disk(o);
	}
	calm_git(o, n, l.at.path, l.at.path, &l.says);
	if (!observe_answer(o, n, &l, &e)) {
		return;
	}
	if (e.op == OP_UNLINK && e.status == STATUS_ASKED) {
		observe_lost_removed(o, l.at.path);
	}
	if (l.says.allowed && idle) {
		e.status = STATUS_ABSENT;
		e.reason = made ? REASON_EXISTS : REASON_NONE;
	}
	observe_tell(o, n, &e);
}

/* If the directories differ, the kernel may return another error, after which programs copy the
 * file. */
static bool in_same_dir(const char *a, const char *b)
{
	size_t n = (size_t)(path_base(a) - a);

	return n == (size_t)(path_base(b) - b) && memcmp(a, b, n) == 0;
}

/* If the plan allows only one of the paths, the event is about the other path. If it allows neither
 * and only one is a violation, the event is about the violation. Readers assume that a line without
 * a remedy is about its first path. */
static void join_judgements(const struct observer *o, struct path_looked *from,
                            const struct path_looked *to, bool takes)
{
	const struct judgement *j = &to->says;
	bool other = from->says.allowed ? !j->allowed || j->error != 0
	                                : j->violation && !from->says.violation;

	if (other) {
		bool own_text = j->remedy == j->text ||
		                (j->remedy == NULL && j->reason == REASON_OUTSIDE_PLAN);
		from->says = *j;
		from->says.remedy = own_text ? from->says.text : j->remedy;
		observe_judge_entry(o, to->at.path, &from->says);
	} else if (takes) {
		observe_judge_entry(o, from->at.path, &from->says);
	}
}

/* Handles rename, which changes both paths, and link, which changes only the second. An exchange
 * needs both paths to exist. */
static void see_two(struct observer *o, const struct seccomp_notif *n,
                    const struct observed_call *c)
{
	struct path_looked from, to;
	struct event e = { .kind = EV_FILE_WRITE, .op = c->op };
	unsigned flags = c->flags != NO_ARG ? (unsigned)observe_arg(n, c->flags) : 0;
	bool follow = (flags & AT_SYMLINK_FOLLOW) != 0;
	bool exchange = c->takes && (flags & RENAME_EXCHANGE) != 0;
	struct path_argument a = observe_argument(n, c);
	const struct path_argument b = { observe_dir(n, c->dir2), c->path2, LAST_ITSELF, false };
	a.last = c->takes ? LAST_ITSELF : follow ? LAST_FOLLOWED : LAST_ENTERED;
	a.empty = a.empty && !c->takes;
	e.mode = exchange ? MODE_EXCHANGE : MODE_NONE;
	if (!observe_look(o, n, &a, &from) || !observe_look(o, n, &b, &to)) {
		observe_unreadable(o, n, c);
		return;
	}
	bool changes = from.at.exists && (!exchange || to.at.exists);
	bool takes = c->takes && changes;
	observe_judge(o, n, &from.at, takes, &from.says);
	if (c->takes) {
		ask_to_write(from.at.path, &from.says);
	}
	observe_judge(o, n, &to.at, changes, &to.says);
	if (changes) {
		observe_judge_missing(o, &to.at, true, &e, &to.says);
	} else if (to.says.reason == REASON_NOT_GRANTED) {
		to.says.allowed = true; /* the call fails for another reason, and reads nothing */
		to.says.reason = REASON_NONE;
		to.says.error = 0;
		to.says.remedy = NULL;
	}
	if (takes && flags == 0 && strcmp(from.at.path, to.at.path) != 0 &&
	    in_same_dir(from.at.path, to.at.path)) {
		observe_judge_mount(o, from.at.path, OP_RENAME, &from.says);
		observe_judge_mount(o, to.at.path, OP_UNLINK, &to.says);
	}
	join_judgements(o, &from, &to, takes);
	calm_git(o, n, from.at.path, to.at.path, &from.says);
	if (!observe_answer(o, n, &from, &e)) {
		return;
	}
	e.path2 = (struct bytes){ to.at.path, strlen(to.at.path) };
	if (takes && e.rule == RULE_PRIVATE && to.says.rule == RULE_PRIVATE) {
		observe_lost_removed(o, from.at.path);
		observe_lost_made(o, to.at.path, to.raw);
	}
	if (from.says.allowed && (!changes || observe_is_nowhere(&to))) {
		e.status = STATUS_ABSENT;
	}
	observe_tell(o, n, &e);
}

static void see_fd(struct observer *o, const struct seccomp_notif *n, const struct observed_call *c)
{
	struct path_looked l = { .raw = "" };
	char said[PATH_MAX];
	struct event e = { .kind = EV_FILE_WRITE, .op = c->op };

	/* Read the facts about the caller now, because it may end while its fd is resolved. */
	(void)observe_process(o, n);
	observe_resolve_fd(o, n, (int)observe_arg(n, c->path), &l.at);
	errno = EMFILE; /* the supervisor has no more fds */
	if (o->starved || !read_text(n, c, said, &e)) {
		observe_unreadable(o, n, c);
		return;
	}
	observe_judge(o, n, &l.at, true, &l.says);
	bool there = observe_answer(o, n, &l, &e);
	e.raw = (struct bytes){ NULL, 0 };
	if (there && l.at.known) {
		/* a pipe or memfd has no path, and the call is not recorded */
		observe_tell(o, n, &e);
	}
}

/* Handles calls that only look for a file (CALL_LOOK). */
static void see_look(struct observer *o, const struct seccomp_notif *n,
                     const struct observed_call *c)
{
	struct path_looked l;
	struct event e = { .kind = EV_FILE_READ, .op = c->op };
	const struct path_argument a = observe_argument(n, c);

	if (observe_look(o, n, &a, &l) && !l.at.exists) {
		observe_judge(o, n, &l.at, false, &l.says);
		if (l.says.reason == REASON_NOT_GRANTED && observe_answer(o, n, &l, &e)) {
			observe_tell(o, n, &e);
			return;
		}
	}
	(void)notify_continue(o->listener, n);
}

void observe_file(struct observer *o, const struct seccomp_notif *n, const struct observed_call *c)
{
	assert(c->path != NO_ARG);
	if (c->family == CALL_OPEN) {
		see_open(o, n, c);
	} else if (c->family == CALL_CHANGE) {
		see_change(o, n, c);
	} else if (c->family == CALL_TWO) {
		see_two(o, n, c);
	} else if (c->family == CALL_LOOK) {
		see_look(o, n, c);
	} else {
		see_fd(o, n, c);
	}
}
