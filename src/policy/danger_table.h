/* danger_table.h - the rows behind danger.h. */
#ifndef POLICY_DANGER_TABLE_H
#define POLICY_DANGER_TABLE_H

#include <stddef.h>

#include "policy/danger.h"

struct danger_row {
	const char *path; /* "/..." or "~/..." */
	unsigned flags;
	const char *why;
};

extern const struct danger_row DANGER_ROWS[];
extern const size_t DANGER_ROWS_COUNT;

#endif
