/* session_view.h - a session and its ledger, for people and for programs. What
 * the store holds is as hostile as those who wrote it: everything is escaped. */
#ifndef CLI_SESSION_VIEW_H
#define CLI_SESSION_VIEW_H

#include "trace/reader.h"
#include "base/json.h"
#include "cli/say.h"
#include "session/engine.h"

enum say_colour session_view_colour(enum session_state s);

/* A bar for each budget and limit; meters without one as a number. */
void session_view_bounds(struct buf *out, const struct session *s);

/* One line of the ledger, short. */
void session_view_line(struct buf *out, const struct line *l);

/* actions[] and violations[] of `show --json`, gathered line by line. */
struct session_story;
struct session_story *session_story_new(void); /* NULL: out of memory */
void session_story_free(struct session_story *s);
void session_story_add(struct session_story *s, const struct line *l);
void session_story_json(struct session_story *s, struct json *j);

#endif
