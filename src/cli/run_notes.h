/* run_notes.h - what is said about a run on standard error, before it starts and after it ends. */
#ifndef CLI_RUN_NOTES_H
#define CLI_RUN_NOTES_H

#include "cli/cli.h"

/* Says to a person where the command starts, if that is not the current directory. */
void run_notes_start(const struct request *r, const struct ssb_plan *plan);
/* Says what was denied, which limits were reached, and which files are gone with the private home.
 */
void run_notes_end(const struct request *r, const struct ssb_plan *plan, const struct owner *owner,
                   const struct ssb_result *result, const struct prepared *found);

#endif
