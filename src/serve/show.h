/* show.h - texts of skills, records and clients as JSON that hides nothing: every text is made
 * visible (base/visible.h). */
#ifndef SERVE_SHOW_H
#define SERVE_SHOW_H

#include <stdbool.h>

#include "base/json.h"
#include "base/json_read.h"

/* Text without line breaks; NULL writes null. */
void show_str(struct json *j, const char *text);
void show_kstr(struct json *j, const char *key, const char *text);
/* Text that keeps its line breaks. */
void show_ktext(struct json *j, const char *key, const char *text, size_t len);

/* Text of others inside our own text: each line is behind a bar, so that nothing in it can look
 * like ours. `visible` must be made visible already. */
void show_barred(struct buf *out, const char *visible, size_t len);

/* A parsed value. A member whose name would change when made visible is omitted, because two names
 * could become the same. */
void show_value(struct json *j, const struct json_doc *doc, const struct json_node *node);
/* The same for JSON text; null if it is not JSON. */
void show_json(struct json *j, const char *text, size_t len);

/* Is the text visible as it is, so that it would be written unchanged? */
bool show_plain(const char *text, size_t len, bool keep_lines);

#endif
