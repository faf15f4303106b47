/* session_view.h - prints a session and its ledger for people and programs. Texts in the store may
 * be hostile, so all are escaped. */
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

/* Collects actions[] and violations[] of `session show --json` from the lines of the ledger. */
struct session_story;
struct session_story *session_story_new(void); /* NULL: out of memory */
void session_story_free(struct session_story *s);
void session_story_add(struct session_story *s, const struct line *l);
void session_story_json(struct session_story *s, struct json *j);

#endif
