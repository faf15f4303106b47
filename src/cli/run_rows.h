/* run_rows.h - prints runs as a table, for `audit list` and `ps`. */
#ifndef CLI_RUN_ROWS_H
#define CLI_RUN_ROWS_H

#include <stdbool.h>
#include <stddef.h>

#include "trace/run_facts.h"

/* Prints the runs on standard output. Returns the exit status. */
int run_rows_print(const struct run_facts *runs, size_t n, bool as_json);

#endif
