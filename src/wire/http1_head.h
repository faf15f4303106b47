/* http1_head.h - the lines of a request's head, one at a time and complete.
 *
 * Each function returns HTTP1_OK or why the line is denied, and notes in
 * struct http1 what the stream checker needs. */
#ifndef WIRE_HTTP1_HEAD_H
#define WIRE_HTTP1_HEAD_H

#include <stdbool.h>
#include <stddef.h>

#include "wire/http1.h"

/* A piece of the caller's bytes; borrows. */
struct span {
	const char *s;
	size_t len;
};

bool http1_is_token(char c); /* may stand in a method or a header name */
bool http1_is_text(char c);  /* may stand in a line at all */

/* The method alone, as soon as its space has come. */
enum http1_deny http1_method(struct span method);

/* The whole first line; method_len bytes of it are the method. */
enum http1_deny http1_request_line(struct http1 *h, struct span line, size_t method_len);

/* A line that is not the first and not empty. */
enum http1_deny http1_header_line(struct http1 *h, struct span line);

/* The same behind a chunked body: nothing there may say where a message ends
 * or whom it is for. */
enum http1_deny http1_trailer_line(struct span line);

/* The blank line has come: what can only be said of the head as a whole. head
 * is all of it. */
enum http1_deny http1_head_end(struct http1 *h, struct span head);

#endif
