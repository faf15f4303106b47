/* observe_exec.c - records the programs that the skill starts, with their arguments.
 *
 * Our own code starts the first program, with which the skill's record begins. Only the kernel
 * knows whether that execve worked (observe_call(), observer_started()): between our look at the
 * file and the execve, an existing program may have been removed, and a missing one may have been
 * created. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "observe/observe_calls.h"
#include "os/notify.h"

#ifndef AT_EXECVE_CHECK /* Linux 6.14 */
#define AT_EXECVE_CHECK 0x10000
#endif

/* The caller only asks whether the program could be executed, as with access(), which is not
 * recorded either. */
static bool is_check(const struct seccomp_notif *n, const struct observed_call *c)
{
	return c->flags != NO_ARG && ((int)observe_arg(n, c->flags) & AT_EXECVE_CHECK) != 0;
}

static void read_arguments(pid_t tid, uint64_t argv, struct exec_asked *x)
{
	uint64_t next[8];
	ssize_t known = 0;
	size_t used = 0;

	while (argv != 0) {
		size_t n = x->e.n_args;
		size_t i = n % ARRAY_LEN(next);
		if (i == 0) {
			known = notify_read(tid, argv + n * sizeof(*next), next, sizeof(next));
		}
		if (known < (ssize_t)((i + 1) * sizeof(*next)) &&
		    notify_read(tid, argv + n * sizeof(*next), &next[i], sizeof(*next)) !=
		            sizeof(*next)) {
			return;
		}
		if (next[i] == 0) {
			return;
		}
		if (n == OBSERVE_ARGS || used == sizeof(x->bytes)) {
			x->e.args_cut = true;
			return;
		}
		char *to = x->bytes + used;
		size_t room = sizeof(x->bytes) - used;
		ssize_t len = notify_read_string(tid, next[i], to, room);
		x->e.args_cut = len < 0;
		if (len < 0) {
			len = errno == ENAMETOOLONG ? (ssize_t)room - 1 : 0;
		}
		x->args[x->e.n_args++] = (struct bytes){ to, (size_t)len };
		used += (size_t)len + 1;
		if (x->e.args_cut) {
			return;
		}
	}
}

static bool is_word(const struct bytes *arg, const char *word)
{
	return arg->n == strlen(word) && memcmp(arg->p, word, arg->n) == 0;
}

/* "git am" fails if the sandbox holds rebase-apply, the name of its state. It looks for that name
 * with a call that is not observed, and makes no call that we could refuse. So the line about the
 * execve of "git am" must say why it fails. */
static void judge_am(struct observer *o, const struct seccomp_notif *n, struct exec_asked *x)
{
	struct resolved here;
	size_t at = 1;

	while (at < x->e.n_args && is_word(&x->args[at], "-c")) {
		at += 2;
	}
	if (!x->l.says.allowed || at >= x->e.n_args || !is_word(&x->args[at], "am") ||
	    !observe_is_git(x->l.at.path)) {
		return;
	}
	observe_resolve(o, n, AT_FDCWD, ".", true, &here);
	const char *remedy = here.known ? observe_held_state(o, here.path, "rebase-apply") : NULL;
	if (remedy != NULL) {
		x->l.says.reason = REASON_PROTECTED;
		x->l.says.remedy = remedy;
	}
}

static void tell_exec(struct observer *o)
{
	struct exec_asked *x = &o->exec;

	observe_tell(o, &x->call, &x->e);
	if (x->e.status == STATUS_ASKED) {
		observe_forget(o, &x->call);
	}
}

void observe_arm(struct observer *o)
{
	o->armed = true;
	observe_named(o);
	if (o->exec.untold) {
		o->exec.e.status = STATUS_ASKED; /* the execve worked, so the program did exist */
		tell_exec(o);
	}
}

void observe_exec(struct observer *o, const struct seccomp_notif *n, const struct observed_call *c)
{
	const struct path_argument a = observe_argument(n, c);
	struct exec_asked *x = &o->exec;

	if (is_check(n, c)) {
		(void)notify_continue(o->listener, n);
		return;
	}
	x->call = *n;
	x->e = (struct event){ .kind = EV_PROCESS_SPAWNED, .op = c->op, .args = x->args };
	x->goes_on = x->untold = false;
	if (!observe_look(o, n, &a, &x->l)) {
		observe_unreadable(o, n, c);
		return;
	}
	observe_judge(o, n, &x->l.at, false, &x->l.says);
	read_arguments((pid_t)n->pid, observe_arg(n, c->argv), x);
	judge_am(o, n, x);
	if (!observe_answer(o, n, &x->l, &x->e)) {
		return;
	}
	x->goes_on = x->l.says.allowed;
	if (x->goes_on && !x->l.at.exists) {
		x->e.status = STATUS_ABSENT;
	}
	/* Before the skill runs, our own search through PATH tries several programs. A program that
	 * is missing is recorded only if its execve works after all; one that is refused is not
	 * recorded. */
	x->untold = !o->armed && x->goes_on && !x->l.at.exists;
	if (o->armed || (x->goes_on && x->l.at.exists)) {
		tell_exec(o);
	}
}
