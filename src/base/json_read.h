/* json_read.h - a strict JSON reader for one capped text.
 *
 * The text may be forged. Recursion is capped; duplicate keys, raw control characters and invalid
 * UTF-8 are refused. The writer (json.h) writes a byte 0x80..0xff that is not UTF-8 as a lone
 * surrogate \udc80..\udcff; the reader turns it back into the byte. */
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
	const char *key; /* the key of a member, NUL-terminated; otherwise NULL */
	const char *str; /* a decoded string, or the text of a number; NUL-terminated */
	size_t len;      /* length of str, which may contain NULs */
	size_t n;        /* number of members or elements */
	uint32_t first;  /* index of the first member or element; 0: none */
	uint32_t next;   /* index of the next sibling; 0: none */
};

/* One parsed text. Must be zeroed first. It may be used for one text after another, and keeps its
 * memory between them. */
struct json_doc {
	struct json_node *nodes; /* [0] is the top value */
	size_t n_nodes;
	size_t room_nodes;
	char *text; /* the nodes point into it */
	size_t room_text;
};

/* Parses exactly one value, with nothing but white space after it. Does not keep `text`. Returns 0,
 * or -1 with a static reason in *ret_why and an empty `doc`. */
int json_read(struct json_doc *doc, const char *text, size_t len, const char **ret_why);
/* Like json_read(), but accepts a raw DEL (0x7f) in a string, which JSON allows and other programs
 * write. json.h always escapes it. */
int json_read_del(struct json_doc *doc, const char *text, size_t len, const char **ret_why);
void json_doc_done(struct json_doc *doc);

/* The functions below accept NULL as `node`, `object` or `parent`. If the value is missing or of
 * another type, they return NULL, false or `otherwise`. */
const struct json_node *json_top(const struct json_doc *doc);
const struct json_node *json_member(const struct json_doc *doc, const struct json_node *object,
                                    const char *key);
const struct json_node *json_first(const struct json_doc *doc, const struct json_node *parent);
const struct json_node *json_next(const struct json_doc *doc, const struct json_node *node);
/* A loop over the members or elements: `n` is each of them. A name that is declared cannot be in
 * parentheses. NOLINTBEGIN(bugprone-macro-parentheses) */
#define JSON_EACH(n, doc, parent)                                                                  \
	for (const struct json_node *n = json_first(doc, parent); (n) != NULL;                     \
	     (n) = json_next(doc, n))
/* NOLINTEND(bugprone-macro-parentheses) */
const char *json_string(const struct json_node *node, const char *otherwise);
int64_t json_integer(const struct json_node *node, int64_t otherwise);
bool json_is(const struct json_node *node, enum json_type type);

#endif
