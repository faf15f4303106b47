/* show.h - writes texts of skills, records and clients as JSON, with hidden characters made visible
 * (base/visible.h). */
#ifndef SERVE_SHOW_H
#define SERVE_SHOW_H

#include <stdbool.h>

#include "base/json.h"
#include "base/json_read.h"

/* Writes text without line breaks; NULL becomes null. */
void show_str(struct json *j, const char *text);
void show_kstr(struct json *j, const char *key, const char *text);
/* Writes text that keeps its line breaks. */
void show_ktext(struct json *j, const char *key, const char *text, size_t len);

/* Writes a foreign text inside a text of the server. Each line gets a bar, so that it cannot look
 * like a line of the server. The caller must already have made hidden characters of `visible`
 * visible. */
void show_barred(struct buf *out, const char *visible, size_t len);

/* Writes a parsed value, with its texts made visible. A member whose name would change is omitted,
 * because two names could become the same. */
void show_value(struct json *j, const struct json_doc *doc, const struct json_node *node);
/* Like show_value(), for JSON text. Writes null if the text is not JSON. */
void show_json(struct json *j, const char *text, size_t len);

/* Returns true if the text has nothing that show_*() would change. */
bool show_plain(const char *text, size_t len, bool keep_lines);

#endif
