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
	const struct level *const *levels; /* of the whole file: where a key belongs */
	size_t n_levels;
	bool nomem;
};

struct field {
	const char *key;
	void (*read)(struct ctx *c, const struct ynode *n, const struct field *f, void *at);
	size_t offset;             /* of the value in the level's struct */
	const char *missing;       /* required: what to write; NULL if optional */
	const struct level *level; /* of a mapping or a list of mappings */
	const char *(*check)(const char *s, char **ret);
	bool unique; /* a repeated item of the list is dropped */
	uint64_t min, max;
};

/* Readers for rows; each leaves `*at` alone when the value is refused, which
 * it reports: a text, a text with its place, a list of those, a number. */
void values_read_text(struct ctx *c, const struct ynode *n, const struct field *f, void *at);
void values_read_mtext(struct ctx *c, const struct ynode *n, const struct field *f, void *at);
void values_read_texts(struct ctx *c, const struct ynode *n, const struct field *f, void *at);
void values_read_number(struct ctx *c, const struct ynode *n, const struct field *f, void *at);

/* Parts of readers; a refusal is reported. values_node_text() borrows, or is NULL. */
const char *values_node_text(const struct ctx *c, const struct ynode *n, const struct field *f);
bool values_node_is_list(const struct ctx *c, const struct ynode *n, const struct field *f);
bool values_node_number(const struct ctx *c, const struct ynode *n, const struct field *f,
                        uint64_t *ret);
/* The index of the word in its table, or -1. */
int values_node_choice(const struct ctx *c, const struct ynode *n, const struct field *f,
                       const char *const *names, size_t n_names);

/* Room for every item of a list in `*ret` (a pointer's address); false, and
 * nothing, for an empty list or without memory. */
bool values_list_alloc(struct ctx *c, const struct ynode *list, size_t item_size, void *ret);

void values_report_type(const struct ctx *c, const struct ynode *n, const struct field *f,
                        const char *wanted, const char *remedy);
/* `problem` is a check's text: "what is wrong; remedy". */
void values_report_problem(const struct ctx *c, const struct ynode *n, const struct field *f,
                           const char *problem);

#endif
