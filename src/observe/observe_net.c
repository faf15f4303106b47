/* observe_net.c - judges the addresses that the skill connects to or sends to, and the unix sockets
 * that it makes. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/xattr.h>

#include "observe/observe.h"
#include "base/own.h"
#include "os/clock.h"
#include "os/net.h"
#include "os/notify.h"
#include "policy/range.h"

#define MAX_MESSAGES 1024    /* the most messages that the kernel sends for one sendmmsg */
#define SERVICE_US   1000000 /* how long a service that was found is remembered */

/* An address as the skill gave it. */
struct skill_address {
	sa_family_t family;
	struct address ip;
	uint16_t port;
	struct bytes unix_path; /* points into any.un; an abstract name begins with NUL */
	union {
		union address_socket ip;
		struct sockaddr_un un;
	} any;
};

enum address_read { READ_DONE, READ_NONSENSE, READ_FAILED };

static enum address_read read_endpoint(pid_t tid, uint64_t address, uint64_t len, bool send,
                                       struct skill_address *ret)
{
	size_t n = len < sizeof(ret->any) ? (size_t)len : sizeof(ret->any);

	memset(ret, 0, sizeof(*ret));
	if (n < sizeof(sa_family_t)) {
		/* the address is too short: the kernel will refuse the call */
		return READ_NONSENSE;
	}
	if (notify_read(tid, address, &ret->any, n) != (ssize_t)n) {
		return READ_FAILED;
	}
	if (ret->any.ip.any.sa_family == AF_UNSPEC && send) {
		/* a send treats AF_UNSPEC as AF_INET; connect() ends a connection */
		ret->any.ip.any.sa_family = AF_INET;
	}
	ret->family = ret->any.ip.any.sa_family;
	if ((ret->family == AF_INET && n >= sizeof(ret->any.ip.in)) ||
	    (ret->family == AF_INET6 && n >= offsetof(struct sockaddr_in6, sin6_scope_id))) {
		return address_from_socket(&ret->any.ip, &ret->ip, &ret->port) ? READ_DONE
		                                                               : READ_NONSENSE;
	}
	/* The kernel accepts no unix address that is longer than sockaddr_un, so `len` must be
	 * checked: `n` may be a little larger, because the union has padding. */
	if (ret->family == AF_UNIX && n > offsetof(struct sockaddr_un, sun_path) &&
	    len <= sizeof(ret->any.un)) {
		size_t room = n - offsetof(struct sockaddr_un, sun_path);
		const char *path = ret->any.un.sun_path;
		ret->unix_path.p = path;
		ret->unix_path.n = path[0] == '\0' ? room : strnlen(path, room);
		return READ_DONE;
	}
	return READ_NONSENSE;
}

/* Records the event if the caller still waits. If the caller has ended, the memory that we read may
 * belong to another process. */
static void tell_event(struct observer *o, const struct seccomp_notif *n, struct event *e)
{
	if (notify_valid(o->listener, n)) {
		observe_tell(o, n, e);
	}
}

/* Refuses a call that cannot be read, because then it cannot be recorded. Always returns false. */
static bool refuse_unreadable(struct observer *o, const struct seccomp_notif *n, enum op op,
                              int *ret_error)
{
	struct event e = { .kind = EV_NETWORK_EGRESS_BLOCKED,
		           .status = STATUS_DENIED,
		           .op = op,
		           .reason = REASON_UNREADABLE,
		           .error = EFAULT };

	*ret_error = EFAULT;
	tell_event(o, n, &e);
	return false;
}

/* Returns whether the socket is UDP, by the name that the kernel has for its protocol. We never
 * open the socket itself: the process that closes the last fd of a socket must wait for as long as
 * its SO_LINGER says, and that process could then be ours. Reading the name holds the socket, too,
 * but only for an instant. If the skill closes the socket in that instant, it delays only
 * itself. */
static bool is_udp(pid_t tid, int fd)
{
	char path[48], name[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", tid, fd);
	return getxattr(path, "system.sockprotoname", name, sizeof(name)) >= 3 &&
	       memcmp(name, "UDP", 3) == 0;
}

static bool is_inside(const struct address *a)
{
	static const uint8_t loop6[16] = { [15] = 1 };
	static const uint8_t none[16] = { 0 };

	if (address_is_v4(a)) {
		return a->b[12] == 127 || memcmp(a->b + 12, none, 4) == 0;
	}
	return memcmp(a->b, loop6, 16) == 0 || memcmp(a->b, none, 16) == 0;
}

/* Describes why an address is refused, and contains the errno that the program gets. */
struct denial {
	enum reason reason;
	char name[HOST_NAME_SIZE]; /* the host that the address stands for; "": none */
	int error;
	bool harmless; /* refused and recorded, but not a violation */
};

/* Returns true if the call may continue; otherwise *ret says why not. */
static bool judge_ip(const struct observer *o, const struct skill_address *to, bool udp,
                     struct denial *ret)
{
	const struct observer_net *net = &o->setup.net;

	if (net->answered != NULL && net->answered(net->arg, &to->ip, to->port, udp)) {
		return true;
	}
	*ret = (struct denial){ .reason = REASON_UNDECLARED_ADDRESS, .error = ENETUNREACH };
	if (net->known != NULL && net->known(net->arg, &to->ip, ret->name)) {
		ret->reason = REASON_UNDECLARED_PORT;
		ret->error = ECONNREFUSED;
	}
	return false;
}

/* Returns whether the broker has a TCP listener at this address and port. The caller's socket need
 * not be TCP: getaddrinfo() connects a datagram socket to each address that it found, to learn
 * which one to prefer, and sends nothing. */
static bool is_served(const struct observer *o, const struct skill_address *to)
{
	const struct observer_net *net = &o->setup.net;

	return net->answered != NULL && net->answered(net->arg, &to->ip, to->port, false);
}

/* Returns whether the address is port 53 on loopback and no resolver answers there. Programs send
 * queries there because the address is hard-wired in them, or because no resolver is configured.
 * The skill cannot listen on this port itself, so every packet to it is a query for a name. */
static bool is_no_resolver(const struct observer *o, const struct skill_address *to)
{
	const struct observer_net *net = &o->setup.net;

	return to->port == 53 && is_inside(&to->ip) &&
	       (net->answered == NULL || !net->answered(net->arg, &to->ip, to->port, true));
}

/* Returns whether the address is in the range of the sandbox's synthetic addresses, even if it
 * stands for no host name. */
static bool is_synthetic(const struct address *a)
{
	struct cidr one = { .base = *a, .bits = 128 };

	return range_of_sandbox(&one) != NULL;
}

/* Returns whether a service of the skill itself listens at this address. To list the connections of
 * one network, the kernel walks through all connections of the machine. One such search takes as
 * long as refusing a hundred calls, and slows down other processes. So the number of searches per
 * second is limited (SERVICE_LOOKS). */
static bool is_found(struct observer *o, pid_t tid, const struct skill_address *to, bool udp)
{
	struct service *last = &o->service;
	uint64_t now = clock_us();

	if (now < last->until_us && last->udp == udp && last->port == to->port &&
	    memcmp(&last->ip, &to->ip, sizeof(to->ip)) == 0) {
		return true;
	}
	if (!bucket_take(&o->service_looks, now) || !net_is_served(tid, &to->ip, to->port, udp)) {
		return false;
	}
	*last = (struct service){ to->ip, to->port, udp, now + SERVICE_US };
	return true;
}

/* Returns whether a service of the host listens at this address of loopback, and none of the skill.
 * The skill's own network has another loopback, so the connection will be refused. */
static bool is_host_loopback(struct observer *o, const struct seccomp_notif *n,
                             const struct skill_address *to)
{
	pid_t tid = (pid_t)n->pid;

	/* Each of these searches is limited, because a search is expensive. */
	return to->port != 0 && !is_udp(tid, (int)n->data.args[0]) &&
	       !is_found(o, tid, to, false) && bucket_take(&o->service_looks, clock_us()) &&
	       !net_is_served(tid, &to->ip, to->port, false) &&
	       net_is_served(getpid(), &to->ip, to->port, false);
}

/* Chromium connects a datagram socket to this fixed address, to learn from the routing table
 * whether there is IPv6, and closes it again. */
static bool is_ipv6_probe(const struct skill_address *to)
{
	static const uint8_t asked[16] = { 0x20, 0x01, 0x48, 0x60, 0x48, 0x60, [14] = 0x88, 0x88 };

	return to->port == 443 && memcmp(to->ip.b, asked, sizeof(asked)) == 0;
}

/* Returns whether a service of the skill itself listens at this address, and the connection is
 * therefore not egress. The addresses of declared names are local to the sandbox, so a service that
 * listens on one of them, or on all addresses, is reached there. */
static bool is_own_service(struct observer *o, pid_t tid, const struct skill_address *to, bool udp,
                           const struct denial *why)
{
	const struct observer_net *net = &o->setup.net;
	bool here = why->error == ECONNREFUSED || is_synthetic(&to->ip);
	bool ours = net->takes != NULL && net->takes(net->arg, &to->ip, to->port, udp);

	return here && !ours && is_found(o, tid, to, udp);
}

/* Writes the remedy that would allow the connection. --net allows only TCP, so UDP needs a rule of
 * the manifest. For an address instead of a name, such a rule needs the owner's permission, too. An
 * address that is not public also needs --allow-private. */
static void put_remedy(const struct observer *o, const char *name, const struct skill_address *to,
                       bool udp, char *out, size_t size)
{
	const struct observer_net *net = &o->setup.net;
	char address[ADDRESS_TEXT];
	bool literal = name[0] == '\0';
	bool v6 = literal && !address_is_v4(&to->ip);
	bool guarded = literal && net->guarded != NULL && net->guarded(net->arg, &to->ip);

	address_format(&to->ip, address);
	if (!udp && guarded) { /* quoted for a shell here, because a remedy with two flags is not
		                  quoted later */
		(void)snprintf(out, size,
		               v6 ? "both --net '[%s]:%u' and --allow-private %s"
		                  : "both --net %s:%u and --allow-private %s",
		               address, to->port, address);
		return;
	}
	if (!udp) {
		(void)snprintf(out, size, v6 ? "--net [%s]:%u" : "--net %s:%u",
		               literal ? address : name, to->port);
		return;
	}
	(void)snprintf(
	        out, size,
	        "'{domain: %s%s%s, ports: [%u], protocol: udp}' under "
	        "permissions.network.egress%s%s%s",
	        v6 ? "\"" : "", literal ? address : name, v6 ? "\"" : "", to->port,
	        literal ? ", and 'network: {allow_literal_addresses: true}' in the policy file"
	                : "",
	        guarded ? ", and --allow-private " : "", guarded ? address : "");
}

/* Returns whether a rule may contain the address. With a rule for any other address, the run would
 * not start. */
static bool can_be_declared(const struct address *a)
{
	char address[ADDRESS_TEXT];
	struct egress_rule rule = { .domain.s = address, .kind = HOST_ADDRESS };
	const char *instead;

	address_format(a, address);
	return !is_synthetic(a) && range_address_problem(&rule, &instead) == NULL;
}

static void tell_ip(struct observer *o, const struct seccomp_notif *n, enum op op,
                    const struct skill_address *to, bool udp, const struct denial *why)
{
	char address[ADDRESS_TEXT], remedy[512];
	struct event e = { .kind = EV_NETWORK_EGRESS_BLOCKED,
		           .status = STATUS_DENIED,
		           .violation = !why->harmless && why->reason != REASON_HOST_LOOPBACK,
		           .op = op,
		           .name = why->name[0] != '\0' ? why->name : NULL,
		           .address = address,
		           .port = to->port,
		           .protocol = udp ? PROTOCOL_UDP : PROTOCOL_TCP,
		           .reason = why->reason,
		           .error = why->error };

	address_format(&to->ip, address);
	/* A harmless call gets no remedy, because the program did not want to reach that port. An
	 * address that cannot be declared gets no remedy either. */
	if (!why->harmless && (why->name[0] != '\0' || can_be_declared(&to->ip))) {
		put_remedy(o, why->name, to, udp, remedy, sizeof(remedy));
		e.remedy = remedy;
	}
	tell_event(o, n, &e);
}

/* Refuses a call that asks a resolver for the address of a name. We do not learn the name, because
 * only a resolver would read it. A program that sends without connecting would wait in vain for the
 * answer, so both connect and send are refused at once. If the plan declares hosts, the program may
 * be asking the wrong resolver for one of them, so that is not recorded as a violation. */
static bool refuse_lookup(struct observer *o, const struct seccomp_notif *n, int *ret_error)
{
	static const char words[] = "look up a name";
	struct event e = { .kind = EV_NETWORK_EGRESS_BLOCKED,
		           .status = STATUS_DENIED,
		           .violation = true,
		           .message = { words, sizeof(words) - 1 },
		           .op = OP_RESOLVE,
		           .port = 53,
		           .protocol = PROTOCOL_DNS,
		           .reason = REASON_NOT_DECLARED,
		           .remedy = "--net HOST",
		           .error = ECONNREFUSED };

	*ret_error = e.error;
	if (o->setup.plan->n_egress == 0) {
		tell_event(o, n, &e);
	}
	return false;
}

/* Hands the call over to the maker. Always returns false. *ret_error is 0 if the maker will answer,
 * else the errno for the caller. */
static bool hand_over(struct observer *o, const struct seccomp_notif *n,
                      const struct skill_address *to, int *ret_error)
{
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + to->unix_path.n);

	*ret_error = observe_unix_address(o, n, &to->any.un, len);
	return false;
}

/* Judges the use of a unix socket. A unix socket is a file, which bind() makes, or an abstract name
 * in the sandbox's own network. */
static bool see_unix(struct observer *o, const struct seccomp_notif *n, enum op op,
                     const struct skill_address *to, int *ret_error)
{
	bool makes = op == OP_BIND;
	char raw[sizeof(to->any.un.sun_path) + 1] = "";
	struct resolved at;
	struct judgement j = { .allowed = true };
	struct event e = { .kind = makes ? EV_FILE_WRITE : EV_FILE_READ,
		           .status = STATUS_ASKED,
		           .op = op,
		           .protocol = PROTOCOL_UNIX };

	/* A send is not handed to the maker: no unix socket that the skill has can send to an
	 * address. */
	bool handed = o->setup.own_sockets && op != OP_SEND;
	if (to->unix_path.n == 0 || to->unix_path.p[0] == '\0') {
		/* an abstract name reaches only processes in the same network: those of the
		 * sandbox */
		return handed ? hand_over(o, n, to, ret_error) : true;
	}
	memcpy(raw, to->unix_path.p, to->unix_path.n);
	observe_resolve(o, n, AT_FDCWD, raw, !makes, &at);
	if (o->starved) {
		return refuse_unreadable(o, n, op, ret_error);
	}
	/* True if the kernel will fail the call: there is no socket to connect to, or the name to
	 * bind exists already. */
	bool idle = makes ? at.exists && !at.unseen : !at.exists;
	observe_judge(o, n, &at, makes && !idle, &j);
	if (makes && !idle) {
		observe_judge_special(o, &at, handed, &j);
	} else if (!makes) {
		/* A grant of its path would not open a socket. */
		j.remedy = j.violation || j.reason == REASON_NOT_GRANTED
		                   ? "sockets outside of the sandbox cannot be granted"
		                   : NULL;
		if (handed) {
			observe_judge_own_socket(o, &at, &j);
		}
	}
	e.path = (struct bytes){ at.path, strlen(at.path) };
	e.rule = j.rule;
	e.entry = j.entry;
	e.reason = j.reason;
	e.remedy = j.remedy;
	if (!j.allowed) {
		e.kind = EV_FILE_BLOCKED;
		e.status = STATUS_DENIED;
		e.violation = j.violation;
		e.error = *ret_error = j.error;
	} else if (idle) {
		e.status = STATUS_ABSENT;
		e.reason = makes ? REASON_EXISTS : e.reason;
	}
	tell_event(o, n, &e);
	return j.allowed && handed ? hand_over(o, n, to, ret_error) : j.allowed;
}

/* Judges one address. Returns true if the call may continue. Otherwise *ret_error is the errno for
 * the caller, or 0 if the maker will answer. */
static bool see_address(struct observer *o, const struct seccomp_notif *n, enum op op,
                        uint64_t address, uint64_t len, int *ret_error)
{
	struct skill_address to;
	struct denial why;

	if (address == 0 || len == 0) {
		return true;
	}
	bool connects = op == OP_CONNECT;
	bool binds = op == OP_BIND;
	enum address_read got =
	        read_endpoint((pid_t)n->pid, address, len, !connects && !binds, &to);
	if (got != READ_DONE) {
		return got == READ_NONSENSE || refuse_unreadable(o, n, op, ret_error);
	}
	if (to.family == AF_UNIX) {
		return see_unix(o, n, op, &to, ret_error);
	}
	if (binds) {
		return true; /* a program binds only to an address of the sandbox */
	}
	if (is_no_resolver(o, &to)) {
		return refuse_lookup(o, n, ret_error);
	}
	if (connects && is_inside(&to.ip) && is_host_loopback(o, n, &to)) {
		why = (struct denial){ .reason = REASON_HOST_LOOPBACK, .error = ECONNREFUSED };
		tell_ip(o, n, op, &to, false, &why);
		return true; /* the kernel refuses it: nothing listens there in the sandbox */
	}
	/* connect() to port 0 sends nothing: resolvers use it to ask the routing table. */
	if (is_inside(&to.ip) || to.port == 0) {
		return true;
	}
	/* The usual case comes first: to decide it, we need not read the protocol of the socket. */
	if (connects && is_served(o, &to)) {
		return true;
	}
	bool udp = is_udp((pid_t)n->pid, (int)n->data.args[0]);
	if (judge_ip(o, &to, udp, &why) || is_own_service(o, (pid_t)n->pid, &to, udp, &why)) {
		return true;
	}
	/* A connect() of a datagram socket is harmless if it probably comes from getaddrinfo() (see
	 * is_served()) or from Chromium's test for IPv6. It sends nothing, and a later send is an
	 * observed call, too. */
	why.harmless = connects && udp && (why.error == ECONNREFUSED || is_ipv6_probe(&to));
	*ret_error = why.error;
	tell_ip(o, n, op, &to, udp, &why);
	return false;
}

static bool see_message(struct observer *o, const struct seccomp_notif *n, uint64_t at,
                        int *ret_error)
{
	struct msghdr msg;

	if (notify_read((pid_t)n->pid, at, &msg, sizeof(msg)) != (ssize_t)sizeof(msg)) {
		return refuse_unreadable(o, n, OP_SEND, ret_error);
	}
	return see_address(o, n, OP_SEND, (uint64_t)(uintptr_t)msg.msg_name, msg.msg_namelen,
	                   ret_error);
}

static bool see_messages(struct observer *o, const struct seccomp_notif *n, int *ret_error)
{
	uint64_t count = n->data.args[2] & 0xffffffffU;

	for (uint64_t i = 0; i < count && i < MAX_MESSAGES; i++) {
		if (!see_message(o, n, n->data.args[1] + i * sizeof(struct mmsghdr), ret_error)) {
			return false;
		}
	}
	return true;
}

void observe_network(struct observer *o, const struct seccomp_notif *n)
{
	const __u64 *a = n->data.args;
	bool go_on;
	int error = EACCES;

	switch (n->data.nr) {
	case SYS_connect:
		go_on = see_address(o, n, OP_CONNECT, a[1], a[2] & 0xffffffffU, &error);
		break;
	case SYS_bind:
		go_on = see_address(o, n, OP_BIND, a[1], a[2] & 0xffffffffU, &error);
		break;
	case SYS_sendto:
		go_on = see_address(o, n, OP_SEND, a[4], a[5] & 0xffffffffU, &error);
		break;
	case SYS_sendmsg:
		go_on = see_message(o, n, a[1], &error);
		break;
	default:
		go_on = see_messages(o, n, &error);
		break;
	}
	if (go_on) {
		notify_continue(o->listener, n);
	} else if (error != 0) {
		notify_refuse(o->listener, n, error);
	}
}
