/* json.h - a small streaming JSON writer into a capped buffer.
 *
 * The writer places commas and escapes; the caller opens and closes objects and arrays. Text may be
 * hostile: control characters and invalid UTF-8 are escaped. A bad byte 0xNN is written as the lone
 * surrogate \udcNN, so that it is preserved and cannot forge a record. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct json {
	struct buf *out; /* borrowed */
	bool pretty;     /* two-space indent and newlines */
	unsigned depth;
	uint64_t filled; /* bit d is 1 if the open object or array at depth d has a member */
	bool keyed;      /* a key was just written, so a value must follow */
};

/* A writer: `struct json j = JSON_TO(&text, true);`. json_init() initialises a writer that is a
 * member of another struct. */
#define JSON_TO(buffer, lines) ((struct json){ .out = (buffer), .pretty = (lines) })
void json_init(struct json *j, struct buf *out, bool pretty);
void json_open(struct json *j, char bracket);  /* '{' or '[' */
void json_close(struct json *j, char bracket); /* '}' or ']' */
void json_key(struct json *j, const char *key);
void json_str(struct json *j, const char *s); /* NULL is written as null */
void json_strn(struct json *j, const char *s, size_t len);
/* Returns the number of bytes that a string takes between its quotes, after escaping. */
size_t json_text_size(const char *s, size_t len);
void json_int(struct json *j, int64_t v);
void json_uint(struct json *j, uint64_t v);
void json_bool(struct json *j, bool v);
void json_null(struct json *j);
void json_raw(struct json *j, const char *text, size_t len); /* `text` is one complete JSON value */

/* The json_k functions write a key and its value. json_kopen() writes a key and opens an object or
 * array, which json_close() must close. */
void json_kopen(struct json *j, const char *key, char bracket);
void json_kstr(struct json *j, const char *key, const char *s);
void json_kstrs(struct json *j, const char *key, char *const *v, size_t n); /* an array */
void json_kint(struct json *j, const char *key, int64_t v);
void json_kuint(struct json *j, const char *key, uint64_t v);
/* Writes a number of millionths with six decimal places: 1500000 is 1.500000. */
void json_kmillionths(struct json *j, const char *key, int64_t v);
#define MILLIONTHS_TEXT 32
const char *json_millionths_text(int64_t v, char out[MILLIONTHS_TEXT]);
void json_kbool(struct json *j, const char *key, bool v);

/* Writes a value of a parsed text (json_read.h). Numbers keep their spelling, and members keep
 * their order. */
struct json_doc;
struct json_node;
void json_copy(struct json *j, const struct json_doc *doc, const struct json_node *node);

#endif
