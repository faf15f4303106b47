/* render.h - writes one line of a record as text for people.
 *
 * A skill chooses the texts in its paths, arguments and output. They are escaped here, so that
 * they can neither control a terminal nor look like another line of the output. cli/line.h
 * adds colours and times. */
#ifndef REPORT_RENDER_H
#define REPORT_RENDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/reader.h"
#include "base/buf.h"

/* Limit of one rendered text. A line of a record is always shorter. */
#define RENDER_MAX ((size_t)16 * 1024 * 1024)

enum render_group {
	GROUP_DENIED,
	GROUP_NETWORK,
	GROUP_WRITTEN,
	GROUP_PRIVATE, /* written to a place that ends with the run */
	GROUP_READ,
	GROUP_ABSENT,
	GROUP_PROGRAMS,
	GROUP_ENV,
	GROUP_OUTPUT,
	GROUP_LIMITS,
	GROUP_REFUSED, /* denied, but not a violation */
	GROUP_FAILED,  /* the plan allows it, and it failed */
	GROUP_COUNT,
	GROUP_NONE = GROUP_COUNT, /* about the run itself, not about an attempt of the skill */
};

/* The mark that shows at a glance what a line means. */
enum render_mark { MARK_NONE, MARK_GOOD, MARK_DENIED, MARK_WARN, MARK_STEP };

/* Returns the group of a line in a view of the whole record. */
enum render_group render_group(const struct line *l);
bool render_is_violation(const struct line *l);

/* Returns whether the line is routine: a read of the system's own files, a write to a device, or a
 * step of the run that its last line repeats. People see it only if they ask for everything. */
bool render_is_routine(const struct line *l);
/* Appends how a run ended, in one word: "exited", "timeout", or the signal, as in "SIGSEGV". */
void render_end(struct buf *out, const char *end, int64_t exit_code);

/* Appends the attempt, as in "read /etc/shadow" or "connect to api.example.com:443 (tls)". */
void render_what(struct buf *out, const struct line *l);

/* Appends a text member, escaped, or `otherwise` if the member is not a text or number. */
void render_text(struct buf *out, const struct json_node *node, const char *otherwise);

/* Appends the message of a line, cut to the width that is left beside its time and category. */
void render_message(struct buf *out, const struct line *l);
const char *render_category(const struct line *l); /* "READ", "NET" */
enum render_mark render_mark(const struct line *l);

#endif
