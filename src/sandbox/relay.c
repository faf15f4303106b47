/* relay.c - pumps that copy the standard streams between the caller and the skill. */
#include "sandbox/relay.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"

/* A pipe that poll() reports as writable accepts this many bytes without blocking. */
#define SAFE_WRITE 4096

void pump_init(struct pump *p, int from, int to, uint64_t limit)
{
	assert(p != NULL);
	p->from = from;
	p->to = to;
	p->owns_from = p->owns_to = false;
	p->limit = limit;
	p->done = p->total = 0;
	p->cut = p->open = false;
	p->trace = NULL;
	p->head = p->len = p->line_len = 0;
	p->error = 0;
}

void pump_done(struct pump *p)
{
	if (p->owns_from) {
		own_close(&p->from);
	}
	if (p->owns_to) {
		own_close(&p->to);
	}
}

struct pollfd pump_wants(const struct pump *p)
{
	if (p->len > 0) {
		return (struct pollfd){ .fd = p->to, .events = POLLOUT };
	}
	return (struct pollfd){ .fd = p->from, .events = p->from < 0 ? 0 : POLLIN };
}

bool pump_finished(const struct pump *p)
{
	return p->from < 0 && p->len == 0;
}

void pump_flush_line(struct pump *p)
{
	if (p->line_len > 0 && p->trace != NULL) {
		trace_event(p->trace, p->kind, p->line, p->line_len);
	}
	p->line_len = 0;
}

/* Records each line as an event. Lines longer than LINE_BYTES become several events. */
static void pump_record(struct pump *p, const char *data, size_t len)
{
	if (p->trace == NULL) {
		return;
	}
	while (len > 0) {
		const char *nl = memchr(data, '\n', len);
		size_t n = nl != NULL ? (size_t)(nl - data) : len;
		size_t room = sizeof(p->line) - p->line_len;
		size_t take = n < room ? n : room;

		memcpy(p->line + p->line_len, data, take);
		p->line_len += take;
		data += take;
		len -= take;
		if (take == n && nl != NULL) {
			data++;
			len--;
			if (p->line_len == 0) {
				trace_event(p->trace, p->kind, "", 0);
			}
			pump_flush_line(p);
		} else if (p->line_len == sizeof(p->line)) {
			pump_flush_line(p);
		}
	}
}

static void pump_end(struct pump *p)
{
	if (p->owns_from) {
		own_close(&p->from);
	}
	p->from = -1;
	if (p->owns_to && p->len == 0) {
		own_close(&p->to);
	}
}

static void pump_read(struct pump *p)
{
	ssize_t n = read(p->from, p->buf, sizeof(p->buf));

	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		return;
	}
	if (n <= 0) {
		/* the end of the file, or EIO because the last process has closed the terminal */
		pump_end(p);
		return;
	}
	uint64_t room = p->limit - p->done;
	p->total += (uint64_t)n;
	if ((uint64_t)n > room) {
		p->cut = true;
		n = (ssize_t)room;
	}
	p->head = 0;
	p->len = p->to < 0 ? 0 : (size_t)n;
	pump_record(p, p->buf, (size_t)n);
	p->done += (uint64_t)n;
	p->open = n > 0 ? p->buf[n - 1] != '\n' : p->open;
}

static void pump_write(struct pump *p)
{
	size_t n = p->len < SAFE_WRITE ? p->len : SAFE_WRITE;
	ssize_t w = write(p->to, p->buf + p->head, n);

	if (w < 0 && (errno == EAGAIN || errno == EINTR)) {
		return;
	}
	if (w < 0) {
		/* EPIPE means that the reader is gone, which is not an error. Other failures, such
		 * as a full disk, are errors. */
		p->error = errno == EPIPE || errno == EIO ? 0 : errno;
		p->len = 0;
		pump_end(p);
		return;
	}
	p->head += (size_t)w;
	p->len -= (size_t)w;
	if (p->from < 0) {
		pump_end(p);
	}
}

void pump_turn(struct pump *p, short revents)
{
	if (revents == 0) {
		return;
	}
	if (p->len > 0) {
		pump_write(p);
	} else if ((revents & (POLLIN | POLLHUP)) == POLLHUP) {
		pump_end(p); /* no writer is left, and nothing to read */
	} else if (p->from >= 0) {
		pump_read(p);
	}
}
