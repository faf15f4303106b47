/* yaml_doc.h - reads a strict subset of YAML into a tree with positions.
 *
 * The subset has one document; mappings, sequences and scalars; no aliases, anchors, tags, merge
 * keys, duplicate or non-scalar keys; valid UTF-8 without NUL and control characters. limits.h
 * bounds sizes and depth. All violations are reported to the diags, not only the first; but a
 * syntax error ends the reading. */
#ifndef MANIFEST_YAML_DOC_H
#define MANIFEST_YAML_DOC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/own.h"
#include "skillsandbox.h"

enum ynode_kind { YNODE_SCALAR, YNODE_MAP, YNODE_SEQ };

struct ynode {
	enum ynode_kind kind;
	unsigned line; /* 1-based */
	unsigned col;
	char *text;  /* scalar */
	bool quoted; /* scalar in quotes or a block: always a string */
	bool bad;    /* its value was refused and reported: the caller must skip it */
	char *key;   /* the key, if this node is a value in a map */
	unsigned key_line;
	unsigned key_col;
	struct ynode *first; /* children in order */
	struct ynode *next;
};

/* Parses bytes; messages call them `file` ("file:line:column"). Returns the root, which must be
 * freed with yaml_doc_free(), or NULL; `diags` then has an error. A tree with errors is returned if
 * possible, so that later checks can report more. A file without content becomes one null scalar;
 * the caller decides whether that is an error. */
struct ynode *yaml_doc_parse(const char *file, const char *bytes, size_t len,
                             struct ssb_diags *diags);
void yaml_doc_free(struct ynode *root); /* accepts NULL */
OWN_FREEP(ynode_freep, struct ynode, yaml_doc_free)

struct ynode *ynode_get(struct ynode *map, const char *key); /* NULL if absent */
bool ynode_is_null(const struct ynode *n);                   /* ~, null, or empty plain */
bool ynode_is_bool(const struct ynode *n); /* plain true, no, On, ... of YAML 1.1 or 1.2 */

#endif
