/* confine.h - confines the two processes of the egress and tells the run that they are. No skill
 * starts before.
 *
 *   broker   no files, no new sockets but by accept, no programs
 *   dialler  reads what the host's resolver reads, writes nothing, starts nothing */
#ifndef EGRESS_CONFINE_H
#define EGRESS_CONFINE_H

#include "skillsandbox.h"

/* Irreversibly confine the calling process, which must be single-threaded. */
int confine_broker(struct ssb_error *err);
int confine_dialler(struct ssb_error *err);

/* Gives up every capability, confines the process, and writes the result into the pipe `ready`,
 * which it closes; with -1 it writes nothing. Exits if the process could not be confined. */
void confine_or_exit(int (*confine)(struct ssb_error *), int ready);

/* Reads the other end of the pipe until `n` processes are confined. Fails if one of them could
 * not be. */
int confine_wait(int ready, int n, struct ssb_error *err);

#endif
