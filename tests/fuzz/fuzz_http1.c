/* Checks HTTP/1 of arbitrary bytes. The result must not depend on how the bytes are divided. A
 * second reader, as lenient as servers are, reads the bytes that the checker let pass: it must find
 * exactly the requests that the checker found, with the same hosts.
 *
 * The first byte is not part of the stream: it chooses how the bytes are divided, and the
 * server's answer to an upgrade. */
#include <stdio.h>
#include <strings.h>

#include "fuzz.h"
#include "../http1_drive.h"

#define MAX_REQUESTS 4096

struct seen {
	size_t n;
	struct {
		size_t at;
		char host[HTTP1_MAX_HOST];
		uint16_t port;
		bool upgrade;
	} request[MAX_REQUESTS];
};

static struct seen whole, pieces;

static void note(void *ctx, size_t at, const struct http1 *h)
{
	struct seen *s = ctx;

	must(h->host[0] != '\0' && strlen(h->host) < HTTP1_MAX_HOST);
	for (const char *c = h->host; *c != '\0'; c++) {
		must((*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') || *c == '.' ||
		     *c == ':' || *c == '-' || *c == '_');
	}
	must(s->n < MAX_REQUESTS);
	s->request[s->n].at = at;
	(void)snprintf(s->request[s->n].host, HTTP1_MAX_HOST, "%s", h->host);
	s->request[s->n].port = h->port;
	s->request[s->n].upgrade = h->upgrade;
	s->n++;
}

/* ---- the lenient reader --------------------------------------------------- */

struct reader {
	const char *s;
	size_t len;
	size_t at;
};

/* Reads up to the next LF, wherever it is. A CR before the LF is not part of the line. Returns
 * false if there is no LF. */
static bool read_line(struct reader *r, const char **ret, size_t *ret_len)
{
	const char *begin = r->s + r->at;
	const char *lf = r->at < r->len ? memchr(begin, '\n', r->len - r->at) : NULL;

	if (lf == NULL) {
		return false;
	}
	*ret = begin;
	*ret_len = (size_t)(lf - begin);
	r->at += *ret_len + 1;
	if (*ret_len > 0 && begin[*ret_len - 1] == '\r') {
		--*ret_len;
	}
	return true;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Copies the value of a header line to `out`. Returns false if the line has another name. Blanks
 * before and after the name are ignored. */
static bool value_of(const char *line, size_t len, const char *name, char *out, size_t room)
{
	size_t i = 0;

	while (i < len && is_blank(line[i])) {
		i++;
	}
	if (len - i < strlen(name) || strncasecmp(line + i, name, strlen(name)) != 0) {
		return false;
	}
	i += strlen(name);
	while (i < len && is_blank(line[i])) {
		i++;
	}
	if (i == len || line[i] != ':') {
		return false;
	}
	do {
		i++;
	} while (i < len && is_blank(line[i]));
	while (len > i && is_blank(line[len - 1])) {
		len--;
	}
	(void)snprintf(out, room, "%.*s", (int)(len - i), line + i);
	return true;
}

struct request {
	char host[512];
	unsigned hosts;
	unsigned lengths;
	unsigned codings;
	unsigned long long length;
};

static bool read_head(struct reader *r, struct request *ret)
{
	char value[512];
	const char *line = NULL;
	size_t len = 0;

	*ret = (struct request){ .hosts = 0 };
	must(read_line(r, &line, &len) && len > 0);
	while (read_line(r, &line, &len)) {
		if (len == 0) {
			return true;
		}
		if (value_of(line, len, "host", ret->host, sizeof(ret->host))) {
			ret->hosts++;
		}
		if (value_of(line, len, "content-length", value, sizeof(value))) {
			ret->lengths++;
			ret->length = strtoull(value, NULL, 10);
		}
		if (value_of(line, len, "transfer-encoding", value, sizeof(value))) {
			ret->codings++;
		}
	}
	return false;
}

static void skip(struct reader *r, unsigned long long n)
{
	r->at = n < r->len - r->at ? r->at + (size_t)n : r->len;
}

/* Returns false if the data ends before the body. */
static bool skip_chunks(struct reader *r)
{
	const char *line = NULL;
	size_t len = 0;

	while (read_line(r, &line, &len)) {
		unsigned long long n = strtoull(line, NULL, 16);
		if (n == 0) {
			while (read_line(r, &line, &len)) {
				if (len == 0) {
					return true;
				}
			}
			return false;
		}
		skip(r, n);
		if (!read_line(r, &line, &len)) {
			return false;
		}
		must(len == 0);
	}
	return false;
}

/* Checks that the text of a Host line means `host`. Brackets, case, a final dot and a port do not
 * matter. */
static void same_host(const char *text, const char *host)
{
	text += strspn(text, "[");
	must(strncasecmp(text, host, strlen(host)) == 0);
	text += strlen(host);
	text += strspn(text, ".]");
	if (text[0] == ':') {
		text += 1 + strspn(text + 1, "0123456789");
	}
	must(text[0] == '\0');
}

static void reread(const char *data, size_t passed, bool switched)
{
	struct reader r = { data, passed, 0 };

	for (size_t i = 0; r.at < r.len; i++) {
		struct request request;
		bool partly = i + 1 == whole.n;

		must(i < whole.n && r.at == whole.request[i].at);
		must(read_head(&r, &request)); /* no head may pass only in part */
		must(request.hosts == 1 && request.lengths + request.codings <= 1);
		same_host(request.host, whole.request[i].host);
		if (switched && whole.request[i].upgrade) {
			return;
		}
		if (request.codings == 0) {
			skip(&r, request.length);
		} else if (!skip_chunks(&r)) {
			must(partly);
			return;
		}
	}
}

/* ---- the target ----------------------------------------------------------- */

static struct drive run(struct seen *s, enum answer answer, const char *data, size_t len,
                        struct cut cut)
{
	struct drive d = { .on_request = note, .ctx = s };

	s->n = 0;
	drive_run(&d, answer, data, len, cut);
	return d;
}

static void same(const struct drive *a, const struct drive *b)
{
	must(a->passed == b->passed && a->requests == b->requests && a->denied == b->denied &&
	     a->why == b->why);
	must(whole.n == pieces.n);
	for (size_t i = 0; i < whole.n; i++) {
		must(whole.request[i].at == pieces.request[i].at);
		must(whole.request[i].port == pieces.request[i].port);
		must(whole.request[i].upgrade == pieces.request[i].upgrade);
		must(strcmp(whole.request[i].host, pieces.request[i].host) == 0);
	}
}

/* The check of the server's answer must not depend on how the bytes are divided, either. */
static void check_status(const char *data, size_t len, size_t step)
{
	struct http1_status a = { .n = 0 };
	struct http1_status b = { .n = 0 };
	bool is_switch = http1_is_switch(&a, data, len);
	bool again = false;

	for (size_t i = 0; i < len; i += step) {
		again = http1_is_switch(&b, data + i, step < len - i ? step : len - i);
	}
	must(is_switch == again && a.decided == b.decided);
	must(!is_switch || a.decided);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1 || size > 256 * 1024) {
		return 0;
	}
	const char *bytes = (const char *)data + 1;
	size_t len = size - 1;
	enum answer answer = (enum answer)(data[0] % 3);
	size_t step = 1 + data[0] / 3;

	struct drive d = run(&whole, answer, bytes, len, (struct cut){ len, len });
	struct drive by_byte = run(&pieces, answer, bytes, len, (struct cut){ 1, 1 });
	same(&d, &by_byte);
	struct drive by_step = run(&pieces, answer, bytes, len, (struct cut){ step, step });
	same(&d, &by_step);
	reread(bytes, d.passed, answer == ANSWER_SWITCH);
	check_status(bytes, len, step);
	return 0;
}
