/* json_read.h - a strict JSON reader for one capped text.
 *
 * The text may be forged: no recursion past a cap, no duplicate keys, no raw
 * control characters, no invalid UTF-8. A lone surrogate \udc80..\udcff is
 * the byte 0x80..0xff that the writer (json.h) could not write otherwise, so
 * what was written comes back byte for byte. */
#ifndef BASE_JSON_READ_H
#define BASE_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum json_type {
	JSON_NULL,
	JSON_FALSE,
	JSON_TRUE,
	JSON_NUMBER,
	JSON_STRING,
	JSON_ARRAY,
	JSON_OBJECT
};

struct json_node {
	enum json_type type;
	const char *key; /* of a member; NUL-terminated; NULL elsewhere */
	const char *str; /* a string decoded, a number as written; NUL-terminated */
	size_t len;      /* of str, which may hold NULs */
	size_t n;        /* members or elements */
	uint32_t first;  /* index of the first of them; 0: none */
	uint32_t next;   /* index of the next sibling; 0: none */
};

/* One parsed text; used again and again, its memory is kept. Zero is empty. */
struct json_doc {
	struct json_node *nodes; /* [0] is the top value */
	size_t n_nodes;
	size_t room_nodes;
	char *text; /* what the nodes point into */
	size_t room_text;
};

/* Parses exactly one value, nothing after it. 0, or -1 with a reason in
 * *ret_why (static text); `doc` then holds nothing. Copies what it needs. */
int json_read(struct json_doc *doc, const char *text, size_t len, const char **ret_why);
/* Like json_read(), but accepts a raw DEL (0x7f) in a string, which JSON allows and other
 * programs write. Our own writer always escapes it. */
int json_read_del(struct json_doc *doc, const char *text, size_t len, const char **ret_why);
void json_doc_done(struct json_doc *doc);

/* All of these accept NULL, and answer NULL or `otherwise` where the thing is
 * not there or is of another type. */
const struct json_node *json_top(const struct json_doc *doc);
const struct json_node *json_member(const struct json_doc *doc, const struct json_node *object,
                                    const char *key);
const struct json_node *json_first(const struct json_doc *doc, const struct json_node *parent);
const struct json_node *json_next(const struct json_doc *doc, const struct json_node *node);
const char *json_string(const struct json_node *node, const char *otherwise);
int64_t json_integer(const struct json_node *node, int64_t otherwise);
bool json_is(const struct json_node *node, enum json_type type);

#endif
