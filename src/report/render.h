/* render.h - one line of a record, in words.
 *
 * Texts that a skill wrote into its paths, arguments and output are escaped here: they can
 * neither control a terminal nor look like a line of ours. Colours and times are added by the
 * terminal's code (cli/line.h). */
#ifndef REPORT_RENDER_H
#define REPORT_RENDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/reader.h"
#include "base/buf.h"

#define RENDER_MAX ((size_t)16 * 1024 * 1024) /* of one text; a line is far shorter */

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
	GROUP_REFUSED, /* denied, but not a violation */
	GROUP_COUNT,
	GROUP_NONE = GROUP_COUNT, /* how the run went, not what it did */
};

/* What a line means at a glance. */
enum render_mark { MARK_NONE, MARK_GOOD, MARK_DENIED, MARK_WARN, MARK_STEP };

/* The group of a line in a view of the whole record. */
enum render_group render_group(const struct line *l);
bool render_is_violation(const struct line *l);

/* Appends what was tried: "read /etc/shadow", "connect to api.example.com:443 (tls)". */
void render_what(struct buf *out, const struct line *l);

/* Appends a text member, escaped; `otherwise` if it is not a text or number. */
void render_text(struct buf *out, const struct json_node *node, const char *otherwise);

/* Appends the message of a line, cut to what fits beside its time and category. */
void render_message(struct buf *out, const struct line *l);
const char *render_category(const struct line *l); /* "READ", "NET" */
enum render_mark render_mark(const struct line *l);

/* Append "1.2 kB", "0.123 s". */
void render_bytes(struct buf *out, uint64_t bytes);
void render_duration(struct buf *out, int64_t micros);

#endif
