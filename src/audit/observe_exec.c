/* observe_exec.c - programs that the skill starts, with their arguments. */
#include <errno.h>
#include <string.h>

#include "audit/observe_calls.h"
#include "os/notify.h"

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

void observe_exec(struct observer *o, const struct seccomp_notif *n, const struct call *c)
{
	static struct arguments args;
	struct looked l;
	struct event e = { .kind = EV_PROCESS_SPAWNED, .op = c->op };

	/* Before anybody asks /proc who it is. */
	if (!o->armed) {
		observe_first(o, (pid_t)n->pid);
	}
	if (!observe_look(o, n, observe_dir(n, c->dir), c->path, observe_last(n, c), &l)) {
		observe_unreadable(o, n, c);
		return;
	}
	/* Until it is found this is our own search through PATH. */
	o->armed = o->armed || l.at.exists;
	observe_judge(o, &l.at, false, &l.says);
	read_arguments((pid_t)n->pid, n->data.args[c->path2], &args);
	if (!observe_answer(o, n, &l, &e)) {
		return;
	}
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
