/* place.h - identifies a process, so that a later process with the same pid is not mistaken for it:
 * a process is identified by pid and start time, within one pid namespace and one boot of one
 * machine. The name of the machine is not enough, because many machines have the same name. */
#ifndef SESSION_PLACE_H
#define SESSION_PLACE_H

#include "session/session.h"

/* Fills run->host and run->boot_id. The host is "NAME#" and the beginning of the hash of the
 * machine id. The boot id is the beginning of the hash of the boot id, "-", and the inode of the
 * pid namespace. */
int place_here(struct session_run *run, struct ssb_error *err);
/* Returns true if both runs have the same boot and pid namespace: a pid means the same process. */
bool place_same(const struct session_run *a, const struct session_run *b);
/* Returns true if `run` was begun on the machine of `here`, which has been restarted since. */
bool place_restarted(const struct session_run *run, const struct session_run *here);

/* Returns a new pidfd of the process with this pid and start time; -1 with errno, which is ESRCH if
 * the process is gone. */
int place_open(pid_t pid, uint64_t start);
int place_kill(int pidfd);
/* Ends the init of a run, and with it the whole run. If the init is the first process of a pid
 * namespace, the kernel ends all other processes; otherwise this function ends the init's
 * descendants first. If a v1 control group has frozen the run, it is thawed, because frozen
 * processes cannot die. Returns -1 with errno. */
int place_end(int pidfd, pid_t init);
/* Returns true if the process of the pidfd is dead. If it was the first process of a namespace, all
 * processes in the namespace are dead, too. */
bool place_dead(int pidfd);

#endif
