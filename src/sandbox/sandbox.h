/* sandbox.h - one run, seen from outside (the supervisor's side).
 *
 * supervisor ──clone3(all namespaces)──► init (PID 1) ──fork──► skill
 *      ▲              ctl: SOCK_SEQPACKET      │  │
 *      └──────────────────────────────────────┘  └ dies with ctl's other end
 */
#ifndef SANDBOX_SANDBOX_H
#define SANDBOX_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "audit/trace.h"
#include "base/buf.h"
#include "policy/plan.h"
#include "skillsandbox.h"

/* Code that runs inside the finished sandbox in place of execve, as the
 * skill's process, with its own copy of our memory. Its result is the exit
 * status. out_fd is a pipe to the supervisor. */
typedef int (*sandbox_payload)(int out_fd, void *arg);

/* Runs `payload` inside the finished sandbox of `plan`; what it writes to
 * out_fd (bounded) is appended to `out`. Its stdio is empty and discarded;
 * no trace is written. */
int sandbox_run_payload(struct ssb_plan *plan, sandbox_payload payload, void *arg, struct buf *out,
                        struct ssb_error *err);

#endif
