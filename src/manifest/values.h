/* values.h - readers of single values, driven by the rows of fields.c. */
#ifndef MANIFEST_VALUES_H
#define MANIFEST_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "manifest/manifest.h"
#include "manifest/report.h"
#include "manifest/yaml_doc.h"

struct level;

struct ctx {
	const struct report *rep;
	/* all levels of the file, to find the level to which an unknown key belongs */
	const struct level *const *levels;
	size_t n_levels;
	bool nomem;
};

struct field {
	const char *key;
	void (*read)(struct ctx *c, const struct ynode *n, const struct field *f, void *at);
	size_t offset; /* offset of the value in the level's struct */
	const char *
	        missing; /* what to write if a required key is missing; NULL: the key is optional */
	/* the keys of a value that is a mapping, or a list of mappings */
	const struct level *level;
	const char *(*check)(const char *s, char **ret);
	bool unique; /* a duplicate item of the list is dropped */
	uint64_t min, max;
};

/* Readers for rows: a text, a text with its position, a list of such texts, a number. A reader
 * reports a value that it refuses, and then leaves `*at` unchanged. */
void values_read_text(struct ctx *c, const struct ynode *n, const struct field *f, void *at);
void values_read_mtext(struct ctx *c, const struct ynode *n, const struct field *f, void *at);
void values_read_texts(struct ctx *c, const struct ynode *n, const struct field *f, void *at);
void values_read_number(struct ctx *c, const struct ynode *n, const struct field *f, void *at);

/* Functions that the readers call. Each reports a value that it refuses. In this case
 * values_node_text() returns NULL (otherwise a borrowed text), and the other two return false. */
const char *values_node_text(const struct ctx *c, const struct ynode *n, const struct field *f);
bool values_node_is_list(const struct ctx *c, const struct ynode *n, const struct field *f);
bool values_node_number(const struct ctx *c, const struct ynode *n, const struct field *f,
                        uint64_t *ret);
/* Returns the index of the node's word in `names`. If the word is not in `names`, reports this and
 * returns -1. */
int values_node_choice(const struct ctx *c, const struct ynode *n, const struct field *f,
                       const char *const *names, size_t n_names);

/* Allocates an array for the items of a list and stores its address in the pointer at `ret`.
 * Returns false, and allocates nothing, if the list is empty or there is no memory. */
bool values_list_alloc(struct ctx *c, const struct ynode *list, size_t item_size, void *ret);

void values_report_type(const struct ctx *c, const struct ynode *n, const struct field *f,
                        const char *wanted, const char *remedy);
/* `problem` is the text of a check: "what is wrong; remedy". */
void values_report_problem(const struct ctx *c, const struct ynode *n, const struct field *f,
                           const char *problem);

#endif
