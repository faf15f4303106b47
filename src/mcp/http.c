/* http.c - the listening socket and new connections. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/address.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/limits.h"
#include "base/number.h"
#include "base/own.h"
#include "mcp/http_priv.h"
#include "os/clock.h"

#define WHERE        "mcp http"
#define PAUSE_MS     100 /* pause when there are no fds or no memory */
#define REQUEST_RATE 2000
#define FAILURE_RATE 10

/* ---- new connections ---------------------------------------------------------- */

/* Closes the oldest connection without a complete request head and without bytes to send. A
 * connection whose request is being served is never closed: any local process can open connections,
 * and must not be able to cut off another client. */
static void make_room(struct mcp_http *h)
{
	struct http_conn *oldest = NULL;

	for (struct http_conn *c = LIST_FIRST(&h->conns); c != NULL; c = LIST_NEXT(c, link)) {
		if ((c->state == CONN_HEAD || c->state == CONN_LINGER) &&
		    queue_left(&c->queue) == 0) {
			oldest = c;
		}
	}
	http_conn_free(oldest);
}

static void resume_accepting(void *arg)
{
	struct mcp_http *h = arg;

	loop_rewatch(h->watch, EPOLLIN);
}

static void accept_client(void *arg, uint32_t events)
{
	static const char full[] = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n"
	                           "Content-Length: 0\r\nConnection: close\r\n\r\n";
	struct mcp_http *h = arg;
	auto_fd fd = accept4(h->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)events;
	if (fd < 0) {
		if ((errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) &&
		    loop_after(h->loop, PAUSE_MS, resume_accepting, h, &h->pause) == 0) {
			loop_rewatch(h->watch, 0);
		}
		return;
	}
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	if (h->n_conns >= MAX_HTTP_CONNS) {
		make_room(h);
	}
	if (h->n_conns >= MAX_HTTP_CONNS) {
		(void)send(fd, full, sizeof full - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
		return;
	}
	http_conn_new(h, steal_fd(&fd));
}

/* ---- the address -------------------------------------------------------------- */

struct http_place {
	struct address address;
	char host[64]; /* as in a URL: an IPv6 address has brackets */
	uint16_t port;
};

/* Parses "HOST:PORT". HOST must be a loopback address. */
static int parse_place(const char *text, struct http_place *ret, struct ssb_error *err)
{
	const char *colon = strrchr(text, ':');
	struct http_place p = { 0 };
	char host[64];
	size_t len = colon != NULL ? (size_t)(colon - text) : 0;
	uint64_t port = 0;
	struct cidr v4 = { 0 }, v6 = { 0 };

	if (len == 0 || len >= sizeof host || !number_parse(colon + 1, 0, UINT16_MAX, &port)) {
		return ssb_fail(err, SSB_E_USAGE, 0, WHERE,
		                "'%s' is not an address: write 127.0.0.1:PORT or [::1]:PORT", text);
	}
	(void)snprintf(p.host, sizeof p.host, "%.*s", (int)len, text);
	(void)snprintf(host, sizeof host, "%s", p.host);
	if (host[0] == '[' && host[len - 1] == ']') {
		host[len - 1] = '\0';
		memmove(host, host + 1, len - 1);
	}
	if (strcmp(host, "localhost") == 0) {
		(void)snprintf(host, sizeof host, "127.0.0.1");
	}
	(void)cidr_parse("127.0.0.0/8", &v4);
	(void)cidr_parse("::1/128", &v6);
	if (!address_parse(host, &p.address) ||
	    (!cidr_contains(&v4, &p.address) && !cidr_contains(&v6, &p.address)) ||
	    (strchr(host, ':') != NULL) != (p.host[0] == '[')) {
		return ssb_fail(err, SSB_E_USAGE, 0, WHERE,
		                "'%s' is not a loopback address: the server accepts only local "
		                "connections; write 127.0.0.1:PORT or [::1]:PORT",
		                text);
	}
	p.port = (uint16_t)port;
	*ret = p;
	return 0;
}

static int listen_there(const struct http_place *p, int *ret_fd, uint16_t *ret_port)
{
	union address_socket at;
	struct address bound;
	socklen_t len = address_to_socket(&p->address, p->port, &at);
	auto_fd fd = socket(at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)) < 0 ||
	    bind(fd, &at.any, len) < 0 || listen(fd, MAX_HTTP_CONNS) < 0 ||
	    getsockname(fd, &at.any, &len) < 0 || !address_from_socket(&at, &bound, ret_port)) {
		return -1;
	}
	*ret_fd = steal_fd(&fd);
	return 0;
}

/* Makes the principal of all modern clients, and h->modern. Clients with the same token are
 * the same principal, also on another server. The principal is a digest of the token's digest,
 * so that the token cannot be computed from it. */
static int make_modern(struct mcp_http *h)
{
	uint8_t digest[SHA256_BYTES];
	char hex[17] = "";

	if (h->has_token) {
		sha256(h->token, sizeof h->token, digest);
		hex_encode(digest, 8, hex);
	}
	(void)snprintf(h->principal, sizeof h->principal, "http%s%s", h->has_token ? ":" : "", hex);
	return mcp_peer_new(h->server, h->principal, NULL, &h->modern);
}

/* Returns true if a client can send the token in a header. Refuses blanks, because clients and
 * servers remove blanks at the end of a header. */
static bool can_be_sent(const char *token)
{
	size_t n = 0;

	while (token[n] > ' ' && token[n] < 0x7f) {
		n++;
	}
	return n > 0 && n <= MAX_HTTP_TOKEN && token[n] == '\0';
}

/* ---- start and end ------------------------------------------------------------- */

static int start_http(struct mcp_http *h, const struct mcp_http_options *o, struct ssb_error *err)
{
	struct http_place p = { 0 };
	uint64_t now = clock_us();

	if (parse_place(o->address, &p, err) != 0) {
		return -1;
	}
	if (o->token != NULL && !can_be_sent(o->token)) {
		return ssb_fail(err, SSB_E_USAGE, 0, WHERE,
		                "a token must have 1 to %d bytes of ASCII, without blanks",
		                MAX_HTTP_TOKEN);
	}
	if (o->token != NULL) {
		h->has_token = true;
		sha256(o->token, strlen(o->token), h->token);
	}
	bucket_init(&h->requests, REQUEST_RATE, 2 * REQUEST_RATE, now);
	bucket_init(&h->failures, FAILURE_RATE, 2 * FAILURE_RATE, now);
	if (listen_there(&p, &h->fd, &h->port) < 0) {
		return ssb_fail(err, SSB_E_SYS, errno, WHERE, "cannot listen on %s", o->address);
	}
	address_format(&p.address, h->host);
	(void)snprintf(h->url, sizeof h->url, "http://%s:%u/mcp", p.host, h->port);
	if (make_modern(h) < 0 ||
	    loop_watch(h->loop, h->fd, EPOLLIN, accept_client, h, &h->watch) < 0) {
		return ssb_fail(err, SSB_E_SYS, errno, WHERE, "%s", o->address);
	}
	return 0;
}

int mcp_http_new(struct mcp_server *s, struct loop *loop, const struct mcp_http_options *o,
                 struct mcp_http **ret, struct ssb_error *err)
{
	struct mcp_http *h = calloc(1, sizeof *h);

	if (h == NULL) {
		return ssb_fail(err, SSB_E_SYS, ENOMEM, WHERE, "%s", o->address);
	}
	h->server = s;
	h->loop = loop;
	h->fd = -1;
	if (start_http(h, o, err) != 0) {
		mcp_http_free(h);
		return -1;
	}
	*ret = h;
	return 0;
}

void mcp_http_free(struct mcp_http *h)
{
	if (h == NULL) {
		return;
	}
	while (!LIST_EMPTY(&h->sessions)) {
		http_session_free(LIST_FIRST(&h->sessions));
	}
	while (!LIST_EMPTY(&h->conns)) {
		http_conn_free(LIST_FIRST(&h->conns));
	}
	mcp_peer_free(h->modern);
	loop_unwatch(&h->watch);
	loop_untimer(&h->pause);
	loop_untimer(&h->sweep);
	own_close(&h->fd);
	free(h);
}

const char *mcp_http_url(const struct mcp_http *h)
{
	return h->url;
}
