/* render.h - one line of a record, in words.
 *
 * What a skill wrote into its paths, arguments and output is escaped here and
 * can neither steer a terminal nor look like a line of ours. Colours and the
 * clock are a matter of the terminal (cli/line.h). */
#ifndef REPORT_RENDER_H
#define REPORT_RENDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/reader.h"
#include "base/buf.h"

#define RENDER_MAX ((size_t)16 * 1024 * 1024) /* of one text; a line is far below */

enum render_group {
	GROUP_DENIED,
	GROUP_NETWORK,
	GROUP_WRITTEN,
	GROUP_READ,
	GROUP_ABSENT,
	GROUP_PROGRAMS,
	GROUP_ENV,
	GROUP_OUTPUT,
	GROUP_LIMITS,
	GROUP_REFUSED, /* denied, but no violation */
	GROUP_COUNT,
	GROUP_NONE = GROUP_COUNT, /* how the run went, not what it did */
};

/* What it means at a glance. */
enum render_mark { MARK_NONE, MARK_GOOD, MARK_DENIED, MARK_WARN, MARK_STEP };

/* Where a line belongs in a view of the whole. */
enum render_group render_group(const struct line *l);
bool render_is_violation(const struct line *l);

/* "read /etc/shadow", "connect to api.example.com:443 (tls)": what was tried. */
void render_what(struct buf *out, const struct line *l);

/* A text member, escaped; `otherwise` where there is none. */
void render_text(struct buf *out, const struct json_node *node, const char *otherwise);

/* The whole message of a line, cut to what fits beside its time and category. */
void render_message(struct buf *out, const struct line *l);
const char *render_category(const struct line *l); /* "READ", "NET" */
enum render_mark render_mark(const struct line *l);

/* "1.2 kB", "0.123 s" */
void render_bytes(struct buf *out, uint64_t bytes);
void render_duration(struct buf *out, int64_t micros);

#endif
