/* broker_first.c - holds back a connection's first bytes until they show the declared name. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/own.h"
#include "egress/broker_priv.h"

/* Makes the buffer of the head four times as large, or allocates the first one. Returns false if
 * all connections of the skill together would then hold more than MAX_HELD_BYTES. */
static bool grow_head(struct broker *b, struct conn *c)
{
	size_t room = c->head_room == 0 ? MIN_HEAD_BYTES : 4 * c->head_room;

	room = room < HEAD_BYTES ? room : HEAD_BYTES;
	if (b->held - c->head_room + room > MAX_HELD_BYTES) {
		return false;
	}
	char *head = realloc(c->head, room);
	if (head == NULL) {
		return false;
	}
	b->held += room - c->head_room;
	c->head = head;
	c->head_room = room;
	return true;
}

/* Uses the buffer of an earlier connection, or allocates one, because allocating and freeing memory
 * for each connection costs more than parsing its bytes. */
static bool take_head(struct broker *b, struct conn *c)
{
	if (b->head == NULL) {
		return grow_head(b, c);
	}
	c->head = b->head;
	c->head_room = b->head_room;
	b->head = NULL;
	return true;
}

void conn_drop_head(struct broker *b, struct conn *c)
{
	if (b->head == NULL) {
		b->head = c->head;
		b->head_room = c->head_room;
	} else {
		free(c->head);
		b->held -= c->head_room;
	}
	c->head = NULL;
	c->head_len = c->head_room = 0;
}

bool conn_is_short(const struct conn *c)
{
	return c->head_len == c->head_room && c->head_room < HEAD_BYTES;
}

bool conn_fill_head(struct broker *b, struct conn *c)
{
	bool room = c->head == NULL ? take_head(b, c) : !conn_is_short(c) || grow_head(b, c);

	if (c->head == NULL || (!room && c->state == CONN_FIRST)) {
		conn_deny(b, c, REASON_NO_MEMORY, "");
		return false;
	}
	if (!room || c->client_eof || c->head_len == HEAD_BYTES) {
		return false;
	}
	ssize_t n =
	        recv(c->client.fd, c->head + c->head_len, c->head_room - c->head_len, MSG_DONTWAIT);
	if (n < 0) {
		if (errno != EAGAIN && errno != EINTR) {
			conn_broken(b, c);
		}
		return false;
	}
	if (n == 0) {
		c->client_eof = true;
		return true;
	}
	c->head_len += (size_t)n;
	c->moved_ms = clock_ms();
	return true;
}

static bool is_name(const struct conn *c, const char *name)
{
	char text[ADDRESS_TEXT];

	return strcmp(name, egress_name(c->slot, &c->asked, text)) == 0;
}

/* Returns whether the head contains the canary of a learning run. Other runs have no canary. */
static bool holds_canary(const struct broker *b, const struct conn *c)
{
	const char *canary = b->c->table->plan->canary;

	return canary[0] != '\0' && c->head_len > 0 &&
	       memmem(c->head, c->head_len, canary, strlen(canary)) != NULL;
}

/* Returns whether more bytes may follow, because the body of a POST may come after its head. */
static bool has_more(const struct conn *c)
{
	return c->first == FIRST_HTTP && c->head[0] == 'P' && !c->client_eof &&
	       c->head_len < HEAD_BYTES && !c->heard;
}

/* Continues a connection whose first bytes are allowed. A learning run with LEARNING_CLOSED ends
 * the connection here if the owner has not named its host. */
static void conn_passes(struct broker *b, struct conn *c)
{
	const struct ssb_plan *plan = b->c->table->plan;
	enum learning learning = plan->learning;

	if (learning != LEARNING_NOT && has_more(c)) {
		c->lingers = true;
	} else if (learning == LEARNING_CLOSED && plan->egress[c->rule].any) {
		conn_deny(b, c, REASON_LEARNING, "");
	} else {
		conn_dial(b, c);
	}
}

static void first_tls(struct broker *b, struct conn *c)
{
	static const enum reason WHY[] = { [TLS_NO_NAME] = REASON_NO_SNI,
		                           [TLS_BAD_NAME] = REASON_BAD_SNI,
		                           [TLS_ECH] = REASON_ECH,
		                           [TLS_NOT_TLS] = REASON_NOT_TLS,
		                           [TLS_BROKEN] = REASON_BAD_HELLO };
	enum tls_verdict v = tls_hello_parse((const uint8_t *)c->head, c->head_len, c->shown);

	if (v == TLS_MORE) {
		if (c->client_eof) {
			conn_deny(b, c, REASON_NO_FIRST_BYTES, "");
		}
	} else if (v != TLS_NAME && !(v == TLS_ECH && b->c->table->plan->egress[c->rule].ech)) {
		conn_deny(b, c, WHY[v], "");
	} else if (!is_name(c, c->shown)) {
		/* With ECH the hello may contain no plain name. */
		conn_deny(b, c, c->shown[0] == '\0' ? REASON_NO_SNI : REASON_OTHER_SNI, "");
	} else {
		conn_passes(b, c);
	}
}

enum reason broker_http_reason(enum http1_deny why)
{
	static const enum reason REASONS[] = {
		[HTTP1_OK] = REASON_OK,
		[HTTP1_NOT_HTTP] = REASON_NOT_HTTP,
		[HTTP1_TOO_LONG] = REASON_TOO_LONG,
		[HTTP1_NO_HOST] = REASON_NO_HOST,
		[HTTP1_TWO_HOSTS] = REASON_TWO_HOSTS,
		[HTTP1_BAD_HOST] = REASON_BAD_HOST,
		[HTTP1_CONNECT] = REASON_CONNECT,
		[HTTP1_FOLDED] = REASON_FOLDED,
		[HTTP1_BAD_HEADER] = REASON_BAD_HEADER,
		[HTTP1_SMUGGLING] = REASON_SMUGGLING,
		[HTTP1_BAD_CHUNK] = REASON_BAD_CHUNK,
		[HTTP1_H2] = REASON_H2,
		[HTTP1_VERSION] = REASON_VERSION,
		[HTTP1_LATE_UPGRADE] = REASON_LATE_UPGRADE,
		[HTTP1_EXPECT] = REASON_EXPECT,
		[HTTP1_LATE_EXPECT] = REASON_LATE_EXPECT,
	};

	return (size_t)why < ARRAY_LEN(REASONS) ? REASONS[why] : REASON_UNKNOWN;
}

enum reason conn_http_wrong(struct conn *c)
{
	snprintf(c->shown, sizeof(c->shown), "%.253s", c->http.host);
	return !is_name(c, c->http.host)                      ? REASON_OTHER_HOST
	       : c->http.port != 0 && c->http.port != c->port ? REASON_OTHER_PORT
	                                                      : REASON_NONE;
}

static void first_http(struct broker *b, struct conn *c)
{
	size_t pass = 0;
	enum http1_verdict v = http1_feed(&c->http, c->head, c->head_len, &pass);

	if (v == HTTP1_DENY) {
		conn_deny(b, c, broker_http_reason(c->http.why), "");
	} else if (v == HTTP1_REQUEST) {
		enum reason wrong = conn_http_wrong(c);
		if (wrong != REASON_NONE) {
			conn_deny(b, c, wrong, "");
			return;
		}
		conn_passes(b, c); /* once connected, the head is parsed again, and then the request
		                      is allowed */
	} else if (c->client_eof) {
		conn_deny(b, c, REASON_NO_FIRST_BYTES, "");
	}
}

/* Recognises the protocol: TLS begins with a handshake record, HTTP with a method. Anything else is
 * relayed unchanged. */
static void sniff_protocol(struct conn *c)
{
	size_t letters = 0;

	while (letters < c->head_len && c->head[letters] >= 'A' && c->head[letters] <= 'Z') {
		letters++;
	}
	bool request = letters >= 3 && (letters == c->head_len || c->head[letters] == ' ');
	c->first = c->head_len > 0 && c->head[0] == 0x16 ? FIRST_TLS
	           : request                             ? FIRST_HTTP
	                                                 : FIRST_RAW;
	/* If there are only capital letters so far, and fewer than the longest method has, it may
	 * still become HTTP. */
	c->unsure =
	        !c->client_eof && c->first != FIRST_TLS && letters == c->head_len && letters < 8;
}

void conn_silent(struct broker *b, struct conn *c)
{
	c->first = c->unsure ? FIRST_RAW : c->first;
	c->unsure = c->lingers = false;
	c->heard = true;
	conn_passes(b, c);
}

/* Chooses between a rule for TLS and a rule for HTTP with the same port. The first byte decides,
 * because no request begins with the first byte of a ClientHello. */
static void choose_rule(struct broker *b, struct conn *c)
{
	enum first_bytes shown = c->head_len > 0 && c->head[0] == 0x16 ? FIRST_TLS : FIRST_HTTP;

	if (c->head_len == 0 || c->first == FIRST_RAW || c->first == shown) {
		return;
	}
	int rule = egress_rule_speaking(b->c->table, c->slot, c->port, shown);
	if (rule >= 0) {
		c->rule = rule;
		c->first = shown;
	}
}

void conn_first(struct broker *b, struct conn *c)
{
	while (c->state == CONN_FIRST && conn_fill_head(b, c)) {
		if (c->unsure) {
			sniff_protocol(c);
		}
		choose_rule(b, c);
		/* Check for the canary first, because the record keeps only the first reason. */
		if (holds_canary(b, c)) {
			conn_deny(b, c, REASON_CANARY, "");
		} else if (c->unsure) {
			continue;
		} else if (c->first == FIRST_TLS) {
			first_tls(b, c);
		} else if (c->first == FIRST_HTTP) {
			first_http(b, c);
		} else {
			conn_passes(b, c);
		}
	}
}
