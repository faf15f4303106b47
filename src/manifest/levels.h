/* levels.h - reads a file format that is described by tables: one table per level of mappings, one
 * row per key. A row says how the value is read, where it is stored, and what to write if it is
 * missing. */
#ifndef MANIFEST_LEVELS_H
#define MANIFEST_LEVELS_H

#include "manifest/values.h"

struct level {
	const char *name; /* the name of the level in messages */
	const struct field *fields;
	size_t n;
};

#define LEVEL(where, table)                                                                        \
	{                                                                                          \
		(where), (table), ARRAY_LEN(table)                                                 \
	}

/* Reads the entries of a mapping into the struct at `base`, to which the rows' offsets refer.
 * Reports unknown and missing keys. */
void level_read(struct ctx *c, const struct ynode *map, const struct level *l, void *base);

/* A format of its own. */
struct level_file {
	const struct level *const *levels; /* the first one is the top */
	size_t n_levels;
	const char *remedy; /* for a file that is not a mapping: what to write */
	const char *problem;
};

/* Reads a whole file, which messages call `name`, into the struct at `base`. An empty file is an
 * empty mapping. Findings go to `diags` (may be NULL). After a failure the struct may be filled in
 * part. */
int level_parse(const struct level_file *f, const char *name, const char *text, size_t len,
                void *base, struct ssb_diags *diags, struct ssb_error *err);

/* A reader for rows: reads a mapping with the row's level. */
void level_read_map(struct ctx *c, const struct ynode *n, const struct field *f, void *at);

#endif
