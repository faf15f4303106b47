/* proxy.c - dials through the owner's HTTP proxy.
 *
 * The proxy's answer is first only peeked at (MSG_PEEK), and then only its head is removed from the
 * socket, because the server's first bytes may follow it directly. */
#include "egress/proxy.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/limits.h"
#include "base/own.h"
#include "base/tail.h"
#include "wire/connect_reply.h"

#define REQUEST_BYTES (4 * MAX_PROXY_USER + 1024) /* base64 credentials, two names of 253 bytes */

/* ---- which proxy -------------------------------------------------------- */

/* Gets the address if the rule itself contains one. Returns false if the rule names a host. */
static bool find_literal(const struct ssb_plan *plan, const struct dial_request *q,
                         struct address *ret)
{
	return egress_is_literal(&plan->egress[q->rule]) && address_parse(q->name, ret);
}

/* Returns whether an item of no_proxy matches the host. `literal` is NULL for a name, because its
 * addresses are not known here. */
static bool item_has(const char *item, const char *name, const struct address *literal)
{
	struct cidr range;

	if (strcmp(item, "*") == 0) {
		return true;
	}
	if (cidr_parse(item, &range)) {
		return literal != NULL && cidr_contains(&range, literal);
	}
	return literal == NULL && tail_behind(name, '.', item);
}

/* Returns whether the host is this machine. Such requests are not sent to a proxy, for which
 * "localhost" would be the proxy itself. */
static bool is_this_machine(const char *name, const struct address *literal)
{
	return literal != NULL ? guard_is_loopback(literal) : tail_behind(name, '.', "localhost");
}

const struct upstream *proxy_for(const struct ssb_plan *plan, const struct dial_request *q)
{
	assert(q->rule < plan->n_egress); /* request_read() has checked it */
	const struct egress_rule *rule = &plan->egress[q->rule];
	bool http = q->id.kind != DIAL_UDP && egress_first_bytes(rule, q->port) == FIRST_HTTP;
	const struct upstream *proxy = &plan->upstream[http ? UPSTREAM_HTTP : UPSTREAM_OTHER];
	struct address a;

	if (proxy->host == NULL || (q->id.kind == DIAL_UDP && plan->udp_direct)) {
		return NULL;
	}
	const struct address *literal = find_literal(plan, q, &a) ? &a : NULL;
	if (is_this_machine(q->name, literal)) {
		return NULL;
	}
	for (size_t i = 0; i < plan->no_proxy.n; i++) {
		if (item_has(plan->no_proxy.v[i], q->name, literal)) {
			return NULL;
		}
	}
	return proxy;
}

/* ---- CONNECT ------------------------------------------------------------ */

static bool wait_for(int fd, short events, int64_t deadline_us)
{
	struct pollfd p = { .fd = fd, .events = events };
	int64_t left = deadline_us - race_now_us();

	if (left <= 0) {
		return false;
	}
	return poll(&p, 1, left > 60000000 ? 60000 : (int)(left / 1000) + 1) > 0;
}

static enum dial_result send_request(int fd, const char *text, size_t len, int64_t deadline_us)
{
	while (len > 0) {
		ssize_t n = send(fd, text, len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno != EAGAIN && errno != EINTR) {
			return DIAL_PROXY_BROKEN;
		}
		if (n < 0 && !wait_for(fd, POLLOUT, deadline_us) && race_now_us() >= deadline_us) {
			return DIAL_TIMEOUT;
		}
		text += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	return DIAL_OK;
}

static enum dial_result judge_status(const struct connect_reply *r)
{
	return connect_reply_opens(r) ? DIAL_OK
	       : r->status == 407     ? DIAL_PROXY_AUTH
	                              : DIAL_PROXY_REFUSED;
}

static enum dial_result hear_reply(int fd, int64_t deadline_us)
{
	struct connect_reply r;
	char buf[1024];

	connect_reply_init(&r);
	for (;;) {
		size_t used = 0;
		ssize_t n = recv(fd, buf, sizeof(buf), MSG_PEEK | MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
			if (!wait_for(fd, POLLIN, deadline_us) && race_now_us() >= deadline_us) {
				return DIAL_TIMEOUT;
			}
			continue;
		}
		if (n <= 0) {
			return DIAL_PROXY_BROKEN;
		}
		enum connect_verdict v = connect_reply_feed(&r, buf, (size_t)n, &used);
		if (v == CONNECT_BROKEN || recv(fd, buf, used, MSG_DONTWAIT) != (ssize_t)used) {
			return DIAL_PROXY_BROKEN;
		}
		if (v == CONNECT_DONE) {
			return judge_status(&r);
		}
		if (race_now_us() >= deadline_us) {
			return DIAL_TIMEOUT; /* the deadline stays the same even if some bytes have
			                        arrived */
		}
	}
}

/* Asks the proxy for a tunnel. `host` is a name that a rule matched, or an address that this
 * program formatted. So it cannot contain a line end. */
static enum dial_result request_tunnel(int fd, const struct upstream *proxy, const char *host,
                                       uint16_t port, int64_t deadline_us)
{
	char text[REQUEST_BYTES];
	bool v6 = strchr(host, ':') != NULL;
	const char *open = v6 ? "[" : "";
	const char *shut = v6 ? "]" : "";
	bool auth = proxy->credentials != NULL;

	int n = snprintf(text, sizeof(text),
	                 "CONNECT %s%s%s:%u HTTP/1.1\r\nHost: %s%s%s:%u\r\n%s%s%s\r\n", open, host,
	                 shut, port, open, host, shut, port,
	                 auth ? "Proxy-Authorization: Basic " : "", auth ? proxy->credentials : "",
	                 auth ? "\r\n" : "");
	if (n < 0 || (size_t)n >= sizeof(text)) {
		return DIAL_PROXY_BROKEN;
	}
	enum dial_result result = send_request(fd, text, (size_t)n, deadline_us);
	explicit_bzero(text, sizeof(text));
	return result != DIAL_OK ? result : hear_reply(fd, deadline_us);
}

/* ---- the whole way ------------------------------------------------------ */

static int fail_dial(struct dial_reply *reply, enum dial_result result)
{
	reply->result = result;
	return -1;
}

int proxy_dial(const struct dial_config *config, const struct upstream *proxy,
               const struct dial_request *q, proxy_resolver *resolve, int64_t deadline_us,
               struct dial_reply *reply)
{
	struct race_target targets[MAX_DIAL_ADDRESSES] = { 0 };
	char text[ADDRESS_TEXT];
	struct address asked;
	bool literal = find_literal(config->table->plan, q, &asked);
	const char *kind = NULL;
	size_t tried = 0;

	assert(proxy->host != NULL);
	reply->via_proxy = 1;
	if (q->id.kind == DIAL_UDP) {
		return fail_dial(reply, DIAL_PROXY_NO_UDP);
	}
	if (literal &&
	    !guard_allows(&asked, config->allow_private, config->n_allow_private, &kind)) {
		reply->address = asked;
		(void)snprintf(reply->range, sizeof(reply->range), "%s", kind);
		return fail_dial(reply, DIAL_GUARDED);
	}
	size_t n = address_parse(proxy->host, &targets[0].address)
	                   ? 1
	                   : resolve(proxy->host, SOCK_STREAM, targets);
	if (n == 0) {
		return fail_dial(reply, DIAL_PROXY_UNREACHABLE);
	}
	race_interleave(targets, n);
	auto_fd fd = race_connect(targets, n, proxy->port, SOCK_STREAM, deadline_us, &tried);
	reply->address = targets[tried].address;
	if (fd < 0) {
		return fail_dial(reply, DIAL_PROXY_UNREACHABLE);
	}
	if (literal) {
		address_format(&asked, text);
	}
	reply->result = request_tunnel(fd, proxy, literal ? text : q->name, q->port, deadline_us);
	return reply->result == DIAL_OK ? steal_fd(&fd) : -1;
}
