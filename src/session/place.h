/* place.h - where a process is, and whether it is still the same one. A number
 * is given to others when its process is gone: a process is known by number and
 * start time within one pid namespace, in one boot of one machine. A machine's name
 * is not enough to know it by: many are called alike. */
#ifndef SESSION_PLACE_H
#define SESSION_PLACE_H

#include "session/session.h"

/* Fills host ("NAME#" and the beginning of the machine id's hash) and boot_id (that of
 * the boot id's hash, "-" and the inode of the pid namespace). */
int place_here(struct session_run *run, struct ssb_error *err);
/* Numbers of processes mean the same to both. */
bool place_same(const struct session_run *a, const struct session_run *b);
/* The same machine, but it has been restarted since. */
bool place_restarted(const struct session_run *run, const struct session_run *here);

/* A new pidfd of exactly that process; -1 with errno, ESRCH where it is gone. */
int place_open(pid_t pid, uint64_t start);
int place_kill(int pidfd);
/* Ends the init of a run, and with it all of the run: the kernel does that where
 * it is the first of a pid namespace, else its descendants are ended before it.
 * Who is frozen by a control group that keeps him from dying (v1) is let go for
 * it. -1 with errno. */
int place_end(int pidfd, pid_t init);
/* The process of a pidfd is dead, and with the first of a namespace all in it. */
bool place_dead(int pidfd);

#endif
