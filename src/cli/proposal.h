/* proposal.h - a manifest that we wrote, and where it goes.
 *
 * Where there is none yet it is written: into the skill's directory, or with --sidecar
 * among the owner's settings, or with --output where that says. Where there is one the
 * difference is shown, and --write puts the new one in its place. */
#ifndef CLI_PROPOSAL_H
#define CLI_PROPOSAL_H

#include "base/buf.h"
#include "cli/cli.h"
#include "manifest/manifest.h"
#include "policy/plan.h"

/* Where it goes (new); NULL: to standard output. `dir` is the skill's: real, absolute. */
int proposal_place(const struct request *r, const struct owner *o, const char *dir, char **ret,
                   struct ssb_error *err);

/* A sidecar says whose it is, any other manifest does not; before it is written. */
int proposal_name(const struct request *r, const char *dir, struct manifest *inout,
                  struct ssb_error *err);

int proposal_put(const struct request *r, const struct owner *o, const char *dir,
                 const struct buf *text, struct ssb_error *err);

#endif
