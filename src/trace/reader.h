/* reader.h - the lines of a record, one after the other.
 *
 * A record may be forged, corrupted, or still be written: lines are capped,
 * memory does not grow with the file, and at the end one may ask again. */
#ifndef TRACE_READER_H
#define TRACE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/codes.h"
#include "base/json_read.h"

struct reader {
	int fd; /* borrowed; read by position, its offset stays */
	char *data;
	size_t room;
	size_t begin; /* of what was not handed out yet */
	size_t end;
	uint64_t offset; /* in the file, of `end` */
};

enum reader_line {
	READER_LINE, /* a line with its newline */
	READER_END,  /* no more bytes, now */
	READER_CUT,  /* no more bytes, now, and the last line has no newline yet */
	READER_LONG, /* past MAX_RECORD_LINE */
	READER_FAIL, /* errno */
};

void reader_init(struct reader *r, int fd, uint64_t offset);
void reader_done(struct reader *r);
/* *ret_line is valid until the next call. */
enum reader_line reader_next(struct reader *r, const char **ret_line, size_t *ret_len);

/* The line before the record in an export. */
bool reader_is_header(const char *line, size_t len);

/* One line, understood. */
struct line {
	struct json_doc doc;
	const struct json_node *top;
	const struct json_node *data; /* NULL: none */
	int64_t seq;
	const char *time;
	const char *kind;
};

/* -1 with a reason (static) where it is no line of a record. Zero `r` first;
 * it is used again for the next line. */
int line_parse(struct line *r, const char *line, size_t len, const char **ret_why);
void line_done(struct line *r);
/* A member of `data`, or else of the line itself; NULL: none. */
const struct json_node *line_get(const struct line *r, const char *name);
/* The same as text; NULL where it is none. */
const char *line_text(const struct line *r, const char *name);
/* The codes of an event (codes.h), from their texts. */
enum reason line_get_reason(const struct line *r);
enum op line_get_op(const struct line *r);
enum mode line_get_mode(const struct line *r);
enum event_status line_get_status(const struct line *r);
/* Of the line `run`: the skill's home inside of the sandbox; NULL: it does not say. */
const char *line_home(const struct line *r);
bool line_true(const struct line *r, const char *name); /* it is there, and true */

#endif
