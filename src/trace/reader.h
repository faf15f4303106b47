/* reader.h - reads the lines of a record one after another.
 *
 * A record may be forged, corrupted, or still be growing. So the length of a line is limited,
 * memory does not grow with the file, and after READER_END or READER_CUT the caller may call
 * reader_next() again later. */
#ifndef TRACE_READER_H
#define TRACE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/codes.h"
#include "trace/event.h"
#include "base/json_read.h"

struct reader {
	int fd; /* borrowed; read with pread(), so its file offset does not change */
	char *data;
	size_t room;
	size_t begin; /* index in `data` of the first byte that was not returned yet */
	size_t end;
	uint64_t offset; /* file offset of `end` */
};

enum reader_line {
	READER_LINE, /* a line with its newline */
	READER_END,  /* no more bytes for now */
	READER_CUT,  /* no more bytes for now, and the last bytes are a line without its newline */
	READER_LONG, /* longer than MAX_RECORD_LINE */
	READER_FAIL, /* reading failed; errno is set */
};

void reader_init(struct reader *r, int fd, uint64_t offset);
void reader_done(struct reader *r);
/* Reads the next line. *ret_line is valid until the next call. */
enum reader_line reader_next(struct reader *r, const char **ret_line, size_t *ret_len);

/* Returns whether the line is the header of an export, which comes before the record. */
bool reader_is_header(const char *line, size_t len);

/* A parsed line. */
struct line {
	struct json_doc doc;
	const struct json_node *top;
	const struct json_node *data; /* NULL: none */
	int64_t seq;
	const char *time;
	enum event_kind kind;
	const char *kind_name; /* the text of `kind`, for messages */
};

/* Parses a line. Returns -1 with a reason (static text) if it is not a line of a record. `r` must
 * be zeroed before the first use and may be reused for the next line. */
int line_parse(struct line *r, const char *line, size_t len, const char **ret_why);
void line_done(struct line *r);
/* Reads the first line of the record `fd`, behind the header of an export. Returns false if it is
 * not the start of a run. */
bool line_read_run(struct line *r, int fd);
/* Returns a member of `data`, or else of the line itself; NULL: none. */
const struct json_node *line_get(const struct line *r, const char *name);
/* Like line_get(), but returns the member as text; NULL if it is not a text. */
const char *line_text(const struct line *r, const char *name);
/* Return the codes of an event (codes.h), converted from their texts. */
enum reason line_get_reason(const struct line *r);
enum op line_get_op(const struct line *r);
enum mode line_get_mode(const struct line *r);
enum event_protocol line_get_protocol(const struct line *r);
enum event_rule line_get_rule(const struct line *r);
enum event_status line_get_status(const struct line *r);
/* Returns the skill's home in the sandbox, from the line `run`; NULL if the line does not contain
 * it. */
const char *line_home(const struct line *r);
/* Returns how many attempts a line counts in addition to those of earlier lines. If the line has
 * both `count` and `first`, the first of its attempts also has a line of its own, and is not
 * counted again. The result is meaningless for a line with `repeat_of`. */
uint64_t line_times(const struct line *r);
bool line_true(const struct line *r,
               const char *name); /* returns whether the member exists and is true */

#endif
