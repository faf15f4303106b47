/* session_view.h - shows a session and its ledger to people and to programs. Texts in the
 * store are as hostile as their authors, so everything is escaped. */
#ifndef CLI_SESSION_VIEW_H
#define CLI_SESSION_VIEW_H

#include "trace/reader.h"
#include "base/json.h"
#include "cli/say.h"
#include "session/engine.h"

enum say_colour session_view_colour(enum session_state s);

/* Appends a bar for each budget and limit, and a number for each meter without a limit. */
void session_view_bounds(struct buf *out, const struct session *s);

/* Appends one ledger line in short form. */
void session_view_line(struct buf *out, const struct line *l);

/* Collects actions[] and violations[] of `show --json` line by line. */
struct session_story;
struct session_story *session_story_new(void); /* NULL: out of memory */
void session_story_free(struct session_story *s);
void session_story_add(struct session_story *s, const struct line *l);
void session_story_json(struct session_story *s, struct json *j);

#endif
