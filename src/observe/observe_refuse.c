/* observe_refuse.c - records signals, and refuses calls that the seccomp profile does not have. */
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "observe/observe_calls.h"
#include "base/own.h"
#include "os/notify.h"

static void put_signal(struct json *j, void *arg)
{
	const int *v = arg;

	json_kint(j, "target", v[0]);
	json_kint(j, "signal", v[1]);
}

/* Writes for people which signal kill(2) sends, and to which processes. */
static struct bytes describe_signal(const int v[2], char *out, size_t size)
{
	int n = v[0] > 0     ? snprintf(out, size, "signal %d to process %d", v[1], v[0])
	        : v[0] == 0  ? snprintf(out, size, "signal %d to its process group", v[1])
	        : v[0] == -1 ? snprintf(out, size, "signal %d to every process", v[1])
	                     : snprintf(out, size, "signal %d to the process group %lld", v[1],
	                                -(long long)v[0]);

	return (struct bytes){ out, (size_t)n };
}

static pid_t find_target(const struct observer *o, const struct seccomp_notif *n,
                         enum signal_target target)
{
	int whom = (int)observe_arg(n, ARG0);

	return target == TARGET_PIDFD    ? observe_pidfd((pid_t)n->pid, whom)
	       : target == TARGET_THREAD ? observe_leader(o, whom)
	                                 : whom;
}

void observe_signal(struct observer *o, const struct seccomp_notif *n,
                    const struct observed_call *c)
{
	int v[2] = { find_target(o, n, c->target), (int)observe_arg(n, c->signal) };
	char words[80];
	struct event e = { .kind = EV_SYSCALL_FILTERED,
		           .status = STATUS_ASKED,
		           .message = describe_signal(v, words, sizeof(words)),
		           .op = c->op,
		           .more = put_signal,
		           .more_arg = v,
		           .more_size = sizeof(v),
		           .apart = (uint64_t)(uint32_t)v[0] << 32 | (uint32_t)v[1] };
	pid_t self = observe_process(o, n)->pid;

	/* Two kinds of signals are not recorded: a signal to the process itself, and signal 0,
	 * which only asks whether a process exists. */
	if (notify_continue(o->listener, n) && v[1] != 0 && v[0] != self) {
		observe_tell(o, n, &e);
	}
}

static void put_call(struct json *j, void *arg)
{
	const struct seccomp_notif *n = arg;

	json_kopen(j, "arguments", '[');
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

/* Returns whether libc and language runtimes make this call in normal use, and work without it.
 * These are sockets for nscd (unix), for the list of interfaces (netlink) and for multipath TCP,
 * and every call that is answered with ENOSYS, which programs also get from an older kernel. */
static bool is_everyday(const struct seccomp_data *call, int error)
{
	uint32_t family = (uint32_t)call->args[0];
	bool many_ways = (uint32_t)call->args[2] == IPPROTO_MPTCP && error == EPROTONOSUPPORT;

	return error == ENOSYS ||
	       (call->nr == SYS_socket && (family == AF_UNIX || family == AF_NETLINK || many_ways));
}

/* Returns event.apart: the arguments by which two attempts with the same call differ. A call of
 * another ABI (`foreign`) has no name, so its number and its ABI are used. */
static uint64_t tell_apart(const struct seccomp_data *call, bool foreign)
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

static enum call_remedy find_remedy(const struct observer *o, const struct seccomp_data *call)
{
	static const struct {
		enum seccomp_profile profile;
		enum call_remedy alone;
		enum call_remedy with_unix;
	} STEPS[] = {
		{ SECCOMP_PROFILE_DEFAULT, CALL_REMEDY_DEFAULT, CALL_REMEDY_DEFAULT_UNIX },
		{ SECCOMP_PROFILE_PERMISSIVE, CALL_REMEDY_PERMISSIVE, CALL_REMEDY_PERMISSIVE_UNIX },
	};
	enum seccomp_profile now = plan_filter(o->setup.plan);
	bool unix_now =
	        o->setup.filter == seccomp_blob(now, true, true) || observe_unix_own(o, call);
	/* If the plan allows unix sockets, but the filter has none, the machine cannot provide
	 * them: --unix-sockets would not help. */
	bool unix_more = unix_now || !o->setup.plan->unix_sockets;

	if (seccomp_eval(seccomp_blob(now, unix_more, true), call) == SECCOMP_RET_ALLOW) {
		return CALL_REMEDY_UNIX_SOCKETS;
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
	return CALL_REMEDY_NONE;
}

/* Kills the whole process of a waiting caller. Uses a pidfd and not the number `leader`: the
 * process may end before the signal is sent, and another process may then have its number. */
static bool end_process(const struct observer *o, const struct seccomp_notif *n, pid_t leader)
{
	auto_fd process = leader > 0 ? (int)syscall(SYS_pidfd_open, leader, 0) : -1;

	return process >= 0 && notify_valid(o->listener, n) &&
	       syscall(SYS_pidfd_send_signal, process, SIGKILL, NULL, 0) == 0;
}

void observe_refuse(struct observer *o, struct seccomp_notif *n, uint32_t verdict)
{
	const struct process *caller = observe_process(o, n);
	bool kill_it = (verdict & SECCOMP_RET_ACTION_FULL) != SECCOMP_RET_ERRNO;
	const char *name = seccomp_call_name(&n->data);
	bool socket = n->data.nr == SYS_socket;
	/* A process that is killed gets no error, so the line has none either. */
	int error = kill_it ? 0 : (int)(verdict & SECCOMP_RET_DATA);
	struct event e = { .kind = EV_SYSCALL_BLOCKED,
		           .status = STATUS_DENIED,
		           .violation = kill_it || !is_everyday(&n->data, error),
		           .op = name[0] != '\0' ? op_from(name) : OP_FOREIGN_ABI,
		           .call = name[0] != '\0' ? name : NULL,
		           .rule = RULE_ENTRY,
		           .entry = profile_name(o->setup.plan->profile),
		           .reason = kill_it ? REASON_ATTACK
		                     : socket && o->setup.plan->profile == PROFILE_STRICT
		                             ? REASON_NO_NETWORK
		                             : REASON_PROFILE,
		           .remedy = kill_it ? NULL : call_remedy_text(find_remedy(o, &n->data)),
		           .error = error,
		           .more = put_call,
		           .more_arg = n,
		           .more_size = sizeof(*n),
		           .apart = tell_apart(&n->data, name[0] == '\0') };

	if (kill_it && end_process(o, n, caller->leader)) {
		o->killed_first = o->killed_first || caller->leader == o->first;
	}
	notify_refuse(o->listener, n, kill_it ? EPERM : error);
	/* Not recorded before that: until its execve, the first process itself tests that forbidden
	 * calls fail. */
	if (o->armed) {
		observe_tell(o, n, &e);
	}
}
