/* show.h - what skills, records and clients wrote, as JSON that hides nothing: every
 * text is made visible (base/visible.h) on its way. */
#ifndef SERVE_SHOW_H
#define SERVE_SHOW_H

#include <stdbool.h>

#include "base/json.h"
#include "base/json_read.h"

/* Text as part of a line; NULL writes null. */
void show_str(struct json *j, const char *text);
void show_kstr(struct json *j, const char *key, const char *text);
/* Text of several lines, which stay. */
void show_ktext(struct json *j, const char *key, const char *text, size_t len);

/* Text of others inside of text of ours: each line behind a bar, so that nothing in it
 * can look like ours. */
void show_barred(struct buf *out, const char *visible, size_t len);

/* A parsed value. A member whose name is not what it seems is left out: two of them
 * could become one. */
void show_value(struct json *j, const struct json_doc *doc, const struct json_node *node);
/* The same for finished JSON; null where it is none. */
void show_json(struct json *j, const char *text, size_t len);

/* Visible as it is: nothing of it would be written otherwise. */
bool show_plain(const char *text, size_t len, bool keep_lines);

#endif
