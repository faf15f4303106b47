/* confine.h - how the two processes of the egress give up what they do not
 * need, and how the run learns that they have: no skill starts before.
 *
 * broker   no files, no new sockets but by accept, no programs
 * dialler  reads what the host's resolver reads, writes nothing, starts nothing */
#ifndef EGRESS_CONFINE_H
#define EGRESS_CONFINE_H

#include "skillsandbox.h"

/* For good, of the calling process, which has one thread. */
int confine_broker(struct ssb_error *err);
int confine_dialler(struct ssb_error *err);

/* Gives up every capability, confines, and says so (or why not) into the pipe
 * `ready`, which it closes; -1: says nothing. A process that could not be
 * confined ends here. */
void confine_or_exit(int (*confine)(struct ssb_error *), int ready);

/* The other end: waits until `n` processes are confined. */
int confine_wait(int ready, int n, struct ssb_error *err);

#endif
