/* otlp_curl.c - https:// by libcurl, loaded when it is first needed: a run does
 * not pay for it, and a machine without it misses nothing else.
 *
 * The few constants are part of libcurl's ABI and never change. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "audit/otlp_http.h"
#include "base/own.h"
#include "os/clock.h"

enum curl_option {
	OPT_WRITEDATA = 10001,
	OPT_URL = 10002,
	OPT_POSTFIELDS = 10015,
	OPT_HTTPHEADER = 10023,
	OPT_SSLCERT = 10025,
	OPT_HEADERDATA = 10029,
	OPT_POSTFIELDSIZE = 60,
	OPT_CAINFO = 10065,
	OPT_SSLKEY = 10087,
	OPT_NOSIGNAL = 99,
	OPT_TIMEOUT_MS = 155,
	OPT_PROTOCOLS = 181,
	OPT_WRITEFUNCTION = 20011,
	OPT_HEADERFUNCTION = 20079,
};
enum { INFO_STATUS = 0x200002, PROTOCOL_HTTPS = 2, GLOBAL_ALL = 3 };

struct curl_slist;

/* Loaded once, and kept: the connection as well. */
static struct {
	void *library;
	void *handle;
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

static bool load_symbols(void)
{
	const struct {
		const char *name;
		void **to;
	} symbols[] = {
		{ "curl_global_init", (void **)&curl.global_init },
		{ "curl_easy_init", (void **)&curl.init },
		{ "curl_easy_setopt", (void **)&curl.setopt },
		{ "curl_easy_perform", (void **)&curl.perform },
		{ "curl_easy_getinfo", (void **)&curl.getinfo },
		{ "curl_easy_reset", (void **)&curl.reset },
		{ "curl_easy_strerror", (void **)&curl.strerror },
		{ "curl_slist_append", (void **)&curl.append },
		{ "curl_slist_free_all", (void **)&curl.free_all },
	};

	for (size_t i = 0; i < ARRAY_LEN(symbols); i++) {
		*symbols[i].to = dlsym(curl.library, symbols[i].name);
		if (*symbols[i].to == NULL) {
			return false;
		}
	}
	return true;
}

static bool load(struct otlp_reply *r)
{
	static const char *const NAMES[] = { "libcurl.so.4", "libcurl-gnutls.so.4" };

	if (curl.handle != NULL) {
		return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(NAMES) && curl.library == NULL; i++) {
		curl.library = dlopen(NAMES[i], RTLD_NOW | RTLD_LOCAL);
	}
	if (curl.library == NULL) {
		snprintf(
		        r->why, sizeof(r->why),
		        "https:// needs libcurl.so.4, which cannot be loaded; install libcurl4, or "
		        "use an http:// endpoint");
		return false;
	}
	if (load_symbols() && curl.global_init(GLOBAL_ALL) == 0) {
		curl.handle = curl.init();
	}
	if (curl.handle == NULL) {
		snprintf(r->why, sizeof(r->why), "libcurl.so.4 cannot be used");
	}
	return curl.handle != NULL;
}

/* Takes all or nothing: nothing ends the transfer. */
static size_t take(const char *data, size_t size, size_t n, void *arg)
{
	struct buf *to = arg;

	buf_add(to, data, size * n);
	return to->failed ? 0 : size * n;
}

struct lines {
	struct curl_slist *list;
	bool failed;
};

static void add_line(struct lines *l, const char *text)
{
	struct curl_slist *list = curl.append(l->list, text);

	l->failed = l->failed || list == NULL;
	l->list = list != NULL ? list : l->list;
}

static void add_header(void *arg, const char *name, const char *value)
{
	struct lines *l = arg;
	auto_buf text;

	buf_init(&text, OTLP_MAX_VALUE + 256);
	buf_addf(&text, "%s%s%s", name, value[0] != '\0' ? ": " : ";", value);
	if (text.failed) {
		l->failed = true;
		return;
	}
	add_line(l, text.data);
	explicit_bzero(text.data, text.len);
}

static void set_options(const struct otlp_target *t, struct otlp_body body, uint64_t deadline_ms,
                        const char *url)
{
	uint64_t now = clock_ms();
	const struct {
		enum curl_option option;
		const char *value;
	} texts[] = {
		{ OPT_URL, url },         { OPT_POSTFIELDS, body.data }, { OPT_CAINFO, t->ca },
		{ OPT_SSLCERT, t->cert }, { OPT_SSLKEY, t->key },
	};
	const struct {
		enum curl_option option;
		long value;
	} numbers[] = {
		{ OPT_POSTFIELDSIZE, (long)body.len },
		{ OPT_NOSIGNAL, 1 },
		{ OPT_TIMEOUT_MS, deadline_ms > now ? (long)(deadline_ms - now) : 1 },
		{ OPT_PROTOCOLS, PROTOCOL_HTTPS },
	};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		if (texts[i].value != NULL) {
			(void)curl.setopt(curl.handle, texts[i].option, texts[i].value);
		}
	}
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		(void)curl.setopt(curl.handle, numbers[i].option, numbers[i].value);
	}
}

/* Of libcurl's failures those of the network. */
static bool may_pass(int code)
{
	enum { RESOLVE = 6, CONNECT = 7, TIMEOUT = 28, NOTHING = 52, SEND = 55, RECEIVE = 56 };

	return code == RESOLVE || code == CONNECT || code == TIMEOUT || code == NOTHING ||
	       code == SEND || code == RECEIVE;
}

static void perform(const struct otlp_target *t, struct buf *head, struct buf *body,
                    struct otlp_reply *ret)
{
	long status = 0;

	(void)curl.setopt(curl.handle, OPT_WRITEFUNCTION, take);
	(void)curl.setopt(curl.handle, OPT_WRITEDATA, body);
	(void)curl.setopt(curl.handle, OPT_HEADERFUNCTION, take);
	(void)curl.setopt(curl.handle, OPT_HEADERDATA, head);
	int code = curl.perform(curl.handle);
	(void)curl.getinfo(curl.handle, INFO_STATUS, &status);
	if (status < 200 || status > 599) {
		ret->retry = may_pass(code);
		snprintf(ret->why, sizeof(ret->why), "%s", curl.strerror(code));
		return;
	}
	ret->status = (unsigned)status;
	if (head->data != NULL) {
		ret->retry_after_ms = otlp_retry_after(head->data, head->len);
	}
	if (code == 0) {
		otlp_reply_body(ret, t, body->data, body->len);
	}
}

void otlp_curl_post(const struct otlp_target *t, struct otlp_body body, uint64_t deadline_ms,
                    struct otlp_reply *ret)
{
	struct lines lines = { 0 };
	char where[OTLP_WHERE_SIZE];
	char url[OTLP_WHERE_SIZE + OTLP_MAX_URL];
	auto_buf in_head;
	auto_buf in_body;

	buf_init(&in_head, OTLP_MAX_REPLY);
	buf_init(&in_body, OTLP_MAX_REPLY);
	if (!load(ret)) {
		return;
	}
	otlp_target_where(t, where);
	snprintf(url, sizeof(url), "%s%s", where, t->path);
	otlp_headers(t, add_header, &lines);
	add_line(&lines, "Expect:"); /* no: the body follows at once */
	curl.reset(curl.handle);
	set_options(t, body, deadline_ms, url);
	(void)curl.setopt(curl.handle, OPT_HTTPHEADER, lines.list);
	if (lines.failed) {
		snprintf(ret->why, sizeof(ret->why), "out of memory");
	} else {
		perform(t, &in_head, &in_body, ret);
	}
	(void)curl.setopt(curl.handle, OPT_HTTPHEADER, NULL);
	curl.free_all(lines.list);
}
