/* render.h - one line of a record, for people.
 *
 * What a skill wrote into its paths, arguments and output is escaped here and
 * can neither steer the terminal nor look like a line of ours. */
#ifndef CLI_RENDER_H
#define CLI_RENDER_H

#include <stdbool.h>

#include "audit/reader.h"
#include "base/buf.h"
#include "cli/say.h"

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

/* Where a line belongs in a view of the whole. */
enum render_group render_group(const struct line *l);
bool render_is_violation(const struct line *l);

/* "read /etc/shadow", "connect to api.example.com:443 (tls)": what was tried. */
void render_what(struct buf *out, const struct line *l);

/* A text member, escaped; `otherwise` where there is none. */
void render_text(struct buf *out, const struct json_node *node, const char *otherwise);

/* [HH:MM:SS.mmm] icon CATEGORY message [TAG] with a newline, in the local time.
 * Nothing for lines that tell people nothing. `who` (may be "") stands before
 * the category: whose line it is, where there are many. */
struct render_style {
	int fd;      /* where it goes: decides on colours */
	bool output; /* also the skill's own output */
	const char *who;
};
void render_line(struct buf *out, const struct line *l, const struct render_style *style);

/* A line as it stands, for programs; to a terminal with deceptive characters
 * as escapes, which mean the same. */
void render_raw(struct buf *out, const char *line, size_t len, int fd);

/* "1.2 kB", "0.123 s" */
void render_bytes(struct buf *out, uint64_t bytes);
void render_duration(struct buf *out, int64_t micros);

#endif
