/* http1_head.h - judges the complete lines of a request's head, one at a time.
 *
 * Each function returns HTTP1_OK, or the reason why the line is denied, and stores in struct http1
 * the facts that the stream checker (http1.c) needs. */
#ifndef WIRE_HTTP1_HEAD_H
#define WIRE_HTTP1_HEAD_H

#include <stdbool.h>
#include <stddef.h>

#include "wire/http1.h"

/* A piece of the caller's bytes (borrowed). */
struct span {
	const char *s;
	size_t len;
};

bool http1_is_token(char c); /* allowed in a method or header name */
bool http1_is_text(char c);  /* allowed anywhere in a line */

/* Judges the method alone, as soon as the blank after it has arrived. */
enum http1_deny http1_method(struct span method);

/* Judges the first line; the method has method_len bytes. */
enum http1_deny http1_request_line(struct http1 *h, struct span line, size_t method_len);

/* Judges a header line, which is not empty. */
enum http1_deny http1_header_line(struct http1 *h, struct span line);

/* Judges a line after a chunked body. The line is denied if its field decides where a message ends
 * or which host receives it. */
enum http1_deny http1_trailer_line(struct span line);

/* Judges the whole head by the rules that concern several lines. Must be called when the blank line
 * at its end has arrived. */
enum http1_deny http1_head_end(struct http1 *h, struct span head);

#endif
