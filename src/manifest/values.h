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
	const struct level *const *levels; /* all levels of the file, to find where a key belongs */
	size_t n_levels;
	bool nomem;
};

struct field {
	const char *key;
	void (*read)(struct ctx *c, const struct ynode *n, const struct field *f, void *at);
	size_t offset;             /* of the value in the level's struct */
	const char *missing;       /* if required: what to write; NULL if optional */
	const struct level *level; /* of a mapping or a list of mappings */
	const char *(*check)(const char *s, char **ret);
	bool unique; /* a duplicate item of the list is dropped */
	uint64_t min, max;
};

/* Readers for rows: a text, a text with its position, a list of those, a number. Each
 * reports a value that it refuses, and leaves `*at` alone then. */
void values_read_text(struct ctx *c, const struct ynode *n, const struct field *f, void *at);
void values_read_mtext(struct ctx *c, const struct ynode *n, const struct field *f, void *at);
void values_read_texts(struct ctx *c, const struct ynode *n, const struct field *f, void *at);
void values_read_number(struct ctx *c, const struct ynode *n, const struct field *f, void *at);

/* Parts of readers. They report what they refuse. values_node_text() returns a borrowed
 * text, or NULL. */
const char *values_node_text(const struct ctx *c, const struct ynode *n, const struct field *f);
bool values_node_is_list(const struct ctx *c, const struct ynode *n, const struct field *f);
bool values_node_number(const struct ctx *c, const struct ynode *n, const struct field *f,
                        uint64_t *ret);
/* The index of the word in its table, or -1. */
int values_node_choice(const struct ctx *c, const struct ynode *n, const struct field *f,
                       const char *const *names, size_t n_names);

/* Allocates room for every item of a list in `*ret` (a pointer's address). Returns false,
 * and allocates nothing, for an empty list or without memory. */
bool values_list_alloc(struct ctx *c, const struct ynode *list, size_t item_size, void *ret);

void values_report_type(const struct ctx *c, const struct ynode *n, const struct field *f,
                        const char *wanted, const char *remedy);
/* `problem` is the text of a check: "what is wrong; remedy". */
void values_report_problem(const struct ctx *c, const struct ynode *n, const struct field *f,
                           const char *problem);

#endif
