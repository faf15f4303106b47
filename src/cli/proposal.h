/* proposal.h - writes a manifest that `learn` or `init` made.
 *
 * The manifest goes into the skill's directory, with --sidecar into the owner's settings, with
 * --output into the given file. If a manifest exists there already, the difference is shown, and
 * only --write replaces it. */
#ifndef CLI_PROPOSAL_H
#define CLI_PROPOSAL_H

#include "base/buf.h"
#include "cli/cli.h"
#include "manifest/manifest.h"
#include "policy/plan.h"

/* Finds the file to write: *ret is new, or NULL for standard output. `dir` is the skill's
 * directory, real and absolute. */
int proposal_place(const struct request *r, const struct owner *o, const char *dir, char **ret,
                   struct ssb_error *err);

/* Sets inout->directory to the skill's directory if the manifest will be a sidecar; otherwise
 * clears it. Must be called before proposal_put(). */
int proposal_name(const struct request *r, const char *dir, struct manifest *inout,
                  struct ssb_error *err);

int proposal_put(const struct request *r, const struct owner *o, const char *dir,
                 const struct buf *text, struct ssb_error *err);

#endif
