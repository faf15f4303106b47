/* run_hint.h - see run_hint.c. */
#ifndef CLI_RUN_HINT_H
#define CLI_RUN_HINT_H

#include "cli/cli.h"

/* Prints what was probably meant after this error of `run`; nothing if that is not clear. */
void run_hint(const struct request *r, const struct ssb_error *err);

#endif
