/* confine.h - confines the two processes of the egress and reports this to the run. No skill starts
 * before both are confined.
 *
 *   broker   no files, no new sockets except by accept(), no programs
 *   dialler  reads only the files that the host's resolver reads; writes no files, starts no
 *            programs */
#ifndef EGRESS_CONFINE_H
#define EGRESS_CONFINE_H

#include "skillsandbox.h"

/* Irreversibly confine the calling process, which must be single-threaded. Return 0, or -1 with
 * `err`. */
int confine_broker(struct ssb_error *err);
int confine_dialler(struct ssb_error *err);

/* Gives up every capability, confines the process, writes the result into the pipe `ready` and
 * closes this pipe. With -1 it writes nothing. Exits if the process could not be confined. */
void confine_or_exit(int (*confine)(struct ssb_error *), int ready);

/* Reads the other end of the pipe until `n` processes are confined. Returns -1 with `err` if one of
 * them could not be confined. */
int confine_wait(int ready, int n, struct ssb_error *err);

#endif
