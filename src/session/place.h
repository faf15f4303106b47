/* place.h - where a process is, and whether it is still the same process. A pid is reused
 * when its process is gone. So a process is identified by pid and start time, within one
 * pid namespace and one boot of one machine. The name of the machine is not enough: many
 * machines share a name. */
#ifndef SESSION_PLACE_H
#define SESSION_PLACE_H

#include "session/session.h"

/* Fills run->host and run->boot_id. The host is "NAME#" and the beginning of the hash of the
 * machine id. The boot id is the beginning of the hash of the boot id, "-", and the inode of the
 * pid namespace. */
int place_here(struct session_run *run, struct ssb_error *err);
/* Returns true if a pid means the same process for both. */
bool place_same(const struct session_run *a, const struct session_run *b);
/* Returns true if it is the same machine, and it was restarted since. */
bool place_restarted(const struct session_run *run, const struct session_run *here);

/* Returns a new pidfd of exactly that process; -1 with errno, which is ESRCH if the process is
 * gone. */
int place_open(pid_t pid, uint64_t start);
int place_kill(int pidfd);
/* Ends the init of a run, and with it the whole run. If the init is the first process of a pid
 * namespace, the kernel ends the others; otherwise its descendants are ended before it. A run that
 * a v1 control group has frozen is thawed, because frozen processes cannot die. Returns -1 with
 * errno. */
int place_end(int pidfd, pid_t init);
/* Returns true if the process of the pidfd is dead. If it was the first process of a namespace, all
 * processes in the namespace are dead, too. */
bool place_dead(int pidfd);

#endif
