/* confine.h - confines those processes of the runtime that read hostile bytes: the broker and the
 * dialler of the egress, and the reader of an image's layer. Each process reports to the run that
 * it is confined. No skill starts before broker and dialler are. */
#ifndef OS_CONFINE_H
#define OS_CONFINE_H

#include "skillsandbox.h"

/* Both functions irreversibly confine the calling process, which must be single-threaded. They
 * return 0, or -1 with `err`. */

/* Leaves the process only its open fds: no files, no new sockets except by accept(), no programs.
 */
int confine_to_fds(struct ssb_error *err);
/* Allows the process only to read the files that the host's resolver reads, and to connect. The
 * process cannot write files or start programs. */
int confine_dialler(struct ssb_error *err);

/* Gives up every capability, confines the process, writes the result into the pipe `ready` and
 * closes this pipe. If `ready` is -1, it writes nothing. Exits if the process could not be
 * confined. */
void confine_or_exit(int (*confine)(struct ssb_error *), int ready);

/* Reads the other end of the pipe until `n` processes are confined. Returns -1 with `err` if one of
 * them could not be confined. */
int confine_wait(int ready, int n, struct ssb_error *err);

#endif
