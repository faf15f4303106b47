/* json_copy.h - a value that was read, written again. */
#ifndef BASE_JSON_COPY_H
#define BASE_JSON_COPY_H

#include "base/json.h"
#include "base/json_read.h"

/* Numbers as they were written, members in their order. As deep as MAX_JSON_DEPTH. */
void json_copy(struct json *j, const struct json_doc *doc, const struct json_node *node);

#endif
