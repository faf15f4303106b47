/* http1_drive.h - gives a connection's bytes to the HTTP/1 checker as the relay does, divided in a
 * given way. The unit test and the fuzzer use it. */
#ifndef TESTS_HTTP1_DRIVE_H
#define TESTS_HTTP1_DRIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "wire/http1.h"

/* How the bytes arrive: `first` bytes at once, then `step` bytes at a time. */
struct cut {
	size_t first;
	size_t step;
};

/* The server's answer to a request for an upgrade, or to "Expect: 100-continue". */
enum answer { ANSWER_NEVER, ANSWER_SWITCH, ANSWER_OTHER };

struct drive {
	size_t passed;
	size_t requests;
	bool denied;
	enum http1_deny why;
	/* Called for each request, with the offset `at` of its head. May be NULL. */
	void (*on_request)(void *ctx, size_t at, const struct http1 *h);
	void *ctx;
};

/* Gives the checker the bytes that have arrived but have not passed yet, until the checker needs
 * more bytes, denies the connection, or waits for the server. */
static void drive_arrived(struct drive *d, struct http1 *h, enum answer answer, const char *data,
                          size_t arrived)
{
	for (;;) {
		size_t pass = (size_t)-1;
		enum http1_verdict v = http1_feed(h, data + d->passed, arrived - d->passed, &pass);

		if (v != HTTP1_PASS && pass != 0) {
			abort();
		}
		if (v == HTTP1_DENY) {
			d->denied = true;
			d->why = h->why;
			return;
		}
		if (v == HTTP1_REQUEST) {
			if (d->on_request != NULL) {
				d->on_request(d->ctx, d->passed, h);
			}
			d->requests++;
			http1_allow(h);
			continue;
		}
		if (pass > arrived - d->passed) {
			abort();
		}
		d->passed += pass;
		if (pass == 0 && http1_waiting(h) && answer != ANSWER_NEVER) {
			(answer != ANSWER_SWITCH ? http1_not_switched
			 : h->expect             ? http1_continued
			                         : http1_switched)(h);
			continue;
		}
		if (pass == 0 || d->passed == arrived) {
			return;
		}
	}
}

/* Plays a connection that sends `data`. The buffer `seen` has '\n' for each byte that has not
 * arrived yet: a checker that read such a byte would give another result. */
static void drive_run(struct drive *d, enum answer answer, const char *data, size_t len,
                      struct cut cut)
{
	char *seen = malloc(len + 1);
	size_t arrived = 0;
	struct http1 h;

	if (seen == NULL) {
		abort();
	}
	memset(seen, '\n', len + 1);
	http1_init(&h);
	for (size_t n = cut.first; arrived < len && !d->denied; n = cut.step) {
		n = n < len - arrived ? n : len - arrived;
		memcpy(seen + arrived, data + arrived, n);
		arrived += n;
		drive_arrived(d, &h, answer, seen, arrived);
	}
	free(seen);
}

#endif
