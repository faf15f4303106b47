/* place.h - where a process is, and whether it is still the same process. A pid is reused
 * when its process is gone. So a process is identified by pid and start time, within one
 * pid namespace and one boot of one machine. The name of the machine is not enough: many
 * machines share a name. */
#ifndef SESSION_PLACE_H
#define SESSION_PLACE_H

#include "session/session.h"

/* Fills run->host ("NAME#" and the beginning of the hash of the machine id) and
 * run->boot_id (the beginning of the hash of the boot id, "-" and the inode of the pid
 * namespace). */
int place_here(struct session_run *run, struct ssb_error *err);
/* True: pids mean the same for both. */
bool place_same(const struct session_run *a, const struct session_run *b);
/* True: the same machine, restarted since. */
bool place_restarted(const struct session_run *run, const struct session_run *here);

/* A new pidfd of exactly that process; -1 with errno, ESRCH if it is gone. */
int place_open(pid_t pid, uint64_t start);
int place_kill(int pidfd);
/* Ends the init of a run, and with it the whole run. The kernel does the rest if the init
 * is the first of a pid namespace; otherwise its descendants are ended before it. A run
 * that a v1 control group has frozen, and so keeps from dying, is thawed. -1 with errno. */
int place_end(int pidfd, pid_t init);
/* True: the process of the pidfd is dead, and with the first of a namespace all in it. */
bool place_dead(int pidfd);

#endif
