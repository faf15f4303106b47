/* curl.c - loads libcurl, and sends one POST with it. */
#include "os/curl.h"

#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "os/clock.h"
#include "os/library.h"

#define MAX_LINE ((size_t)32 * 1024) /* bytes of one header that is sent */

/* These constants are part of the stable ABI of libcurl. */
enum curl_option {
	OPT_FOLLOWLOCATION = 52,
	OPT_POSTFIELDSIZE = 60,
	OPT_NOSIGNAL = 99,
	OPT_TIMEOUT_MS = 155,
	OPT_PROTOCOLS = 181,
	OPT_WRITEDATA = 10001,
	OPT_URL = 10002,
	OPT_POSTFIELDS = 10015,
	OPT_HTTPHEADER = 10023,
	OPT_SSLCERT = 10025,
	OPT_HEADERDATA = 10029,
	OPT_CAINFO = 10065,
	OPT_SSLKEY = 10087,
	OPT_NOPROXY = 10177,
	OPT_WRITEFUNCTION = 20011,
	OPT_HEADERFUNCTION = 20079,
};
enum {
	INFO_STATUS = 0x200002,
	INFO_OS_ERRNO = 0x200019,
	PROTOCOL_HTTP = 1,
	PROTOCOL_HTTPS = 2,
	GLOBAL_ALL = 3
};
enum curl_code {
	CODE_RESOLVE = 6,
	CODE_CONNECT = 7,
	CODE_TIMEOUT = 28,
	CODE_NOTHING = 52,
	CODE_SEND = 55,
	CODE_RECEIVE = 56,
};

struct curl_slist;

static struct {
	int (*global_init)(long flags);
	void *(*init)(void);
	int (*setopt)(void *handle, int option, ...);
	int (*perform)(void *handle);
	int (*getinfo)(void *handle, int info, ...);
	void (*reset)(void *handle);
	const char *(*strerror)(int code);
	struct curl_slist *(*append)(struct curl_slist *list, const char *text);
	void (*free_all)(struct curl_slist *list);
} curl;

static bool loaded;
static void *handle; /* kept, together with its open connection */

#define CALL(name, member)                                                                         \
	{                                                                                          \
		name, offsetof(__typeof__(curl), member)                                           \
	}

static const struct library_call CALLS[] = {
	CALL("curl_global_init", global_init), CALL("curl_easy_init", init),
	CALL("curl_easy_setopt", setopt),      CALL("curl_easy_perform", perform),
	CALL("curl_easy_getinfo", getinfo),    CALL("curl_easy_reset", reset),
	CALL("curl_easy_strerror", strerror),  CALL("curl_slist_append", append),
	CALL("curl_slist_free_all", free_all),
};

static bool load_library(struct curl_reply *r)
{
	static const char *const FILES[] = { "libcurl.so.4", "libcurl-gnutls.so.4" };
	struct ssb_error err = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(FILES) && !loaded; i++) {
		const struct library l = { FILES[i], "libcurl", "libcurl4", CALLS,
			                   ARRAY_LEN(CALLS) };
		(void)library_load(&l, &curl, &loaded, "curl", &err); /* keeps the first error */
	}
	if (!loaded) {
		snprintf(r->why, sizeof(r->why), "%s", err.text);
		return false;
	}
	if (handle == NULL && curl.global_init(GLOBAL_ALL) == 0) {
		handle = curl.init();
	}
	if (handle == NULL) {
		snprintf(r->why, sizeof(r->why), "libcurl cannot be initialised");
	}
	return handle != NULL;
}

/* Called by libcurl. Returning fewer bytes than were offered ends the transfer. */
static size_t take_body(const char *data, size_t size, size_t n, void *arg)
{
	struct buf *to = arg;

	buf_add(to, data, size * n);
	return to->failed ? 0 : size * n;
}

/* Receives the heads of all answers. `over` is true if the last line was the empty line that ends a
 * head. */
struct answer_head {
	struct buf *to;
	bool over;
};

static size_t take_head(const char *data, size_t size, size_t n, void *arg)
{
	struct answer_head *h = arg;
	size_t len = size * n;

	h->over = (len == 2 && data[0] == '\r') || (len == 1 && data[0] == '\n');
	return take_body(data, size, n, h->to);
}

struct header_lines {
	struct curl_slist *list;
	bool failed;
};

static void add_line(struct header_lines *l, const char *text)
{
	struct curl_slist *list = curl.append(l->list, text);

	l->failed = l->failed || list == NULL;
	l->list = list != NULL ? list : l->list;
}

static void add_header(struct header_lines *l, const struct curl_header *h)
{
	auto_buf text = BUF(MAX_LINE);

	buf_addf(&text, "%s%s%s", h->name, h->value[0] != '\0' ? ": " : ";", h->value);
	if (text.failed) {
		l->failed = true;
		return;
	}
	add_line(l, text.data);
	explicit_bzero(text.data, text.len);
}

static void set_options(const struct curl_request *q)
{
	uint64_t now = clock_ms();
	const struct {
		enum curl_option option;
		const char *value;
	} texts[] = {
		{ OPT_URL, q->url },    { OPT_POSTFIELDS, q->body },
		{ OPT_CAINFO, q->ca },  { OPT_SSLCERT, q->cert },
		{ OPT_SSLKEY, q->key }, { OPT_NOPROXY, q->direct ? "*" : NULL },
	};
	const struct {
		enum curl_option option;
		long value;
	} numbers[] = {
		{ OPT_POSTFIELDSIZE, (long)q->len },
		{ OPT_NOSIGNAL, 1 },
		{ OPT_FOLLOWLOCATION, 0 },
		{ OPT_TIMEOUT_MS, q->deadline_ms > now ? (long)(q->deadline_ms - now) : 1 },
		{ OPT_PROTOCOLS, q->plain ? PROTOCOL_HTTP | PROTOCOL_HTTPS : PROTOCOL_HTTPS },
	};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		if (texts[i].value != NULL) {
			(void)curl.setopt(handle, texts[i].option, texts[i].value);
		}
	}
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		(void)curl.setopt(handle, numbers[i].option, numbers[i].value);
	}
}

/* True for a failure of the network, which may be temporary. */
static bool may_pass(int code)
{
	return code == CODE_RESOLVE || code == CODE_CONNECT || code == CODE_TIMEOUT ||
	       code == CODE_NOTHING || code == CODE_SEND || code == CODE_RECEIVE;
}

static void perform_request(struct buf *head, struct buf *body, struct curl_reply *ret)
{
	struct answer_head h = { .to = head };
	long status = 0;

	(void)curl.setopt(handle, OPT_WRITEFUNCTION, take_body);
	(void)curl.setopt(handle, OPT_WRITEDATA, body);
	(void)curl.setopt(handle, OPT_HEADERFUNCTION, take_head);
	(void)curl.setopt(handle, OPT_HEADERDATA, &h);
	int code = curl.perform(handle);
	(void)curl.getinfo(handle, INFO_STATUS, &status);
	if (!h.over || status < 200 || status > 599) {
		ret->retry = may_pass(code);
		long error = 0;
		(void)curl.getinfo(handle, INFO_OS_ERRNO, &error);
		bool named = code == CODE_CONNECT && error > 0;
		snprintf(ret->why, sizeof(ret->why), "%s%s%s",
		         code != 0 ? curl.strerror(code) : "the answer is not HTTP",
		         named ? ": " : "", named ? strerror((int)error) : "");
		return;
	}
	ret->status = (unsigned)status;
	ret->whole = code == 0;
}

void curl_post(const struct curl_request *q, struct buf *head, struct buf *body,
               struct curl_reply *ret)
{
	struct header_lines lines = { 0 };

	*ret = (struct curl_reply){ 0 };
	if (!load_library(ret)) {
		return;
	}
	for (size_t i = 0; i < q->n_headers; i++) {
		add_header(&lines, &q->headers[i]);
	}
	add_line(&lines, "Expect:"); /* send the body without waiting for a 100 */
	curl.reset(handle);
	set_options(q);
	(void)curl.setopt(handle, OPT_HTTPHEADER, lines.list);
	if (lines.failed) {
		snprintf(ret->why, sizeof(ret->why), "out of memory");
	} else {
		perform_request(head, body, ret);
	}
	(void)curl.setopt(handle, OPT_HTTPHEADER, NULL);
	curl.free_all(lines.list);
}
