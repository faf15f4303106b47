/* view.h - what every sandbox shows, whatever is granted: one table.
 *
 * The table determines the mounts, the Landlock rules, what the observer says about a path, what a
 * grant of "/" leaves out, where a home may be and where decoys may be placed. tests/unit/test_view
 * builds a sandbox and compares it with the table, entry by entry. The plan adds the grants and the
 * private home. */
#ifndef POLICY_VIEW_H
#define POLICY_VIEW_H

#include <stdbool.h>
#include <stddef.h>

#include "policy/plan.h"

/* What is at a path. */
enum view_shown {
	VIEW_NOTHING, /* nothing: the row is needed for its zone or its claim */
	VIEW_DIR,     /* a read-only directory of the sandbox's root */
	VIEW_PRIVATE, /* a private directory of this run, which the skill may change */
	VIEW_KERNEL,  /* a file system that the kernel makes for this sandbox */
	VIEW_HOST,    /* the host's, read-only; a symlink is copied, a missing path is left out */
	VIEW_DEVICE,  /* the host's device node */
	VIEW_FILE,    /* a file that the sandbox makes, read-only */
	VIEW_LINK,    /* a symlink that the sandbox makes, to `to` */
	VIEW_MASKED,  /* a file of the kernel that reads as empty */
};

/* How the observer treats a path in a place of the view. */
enum zone {
	ZONE_AROUND,  /* treated like the place that contains it */
	ZONE_SYSTEM,  /* the host's directory, shown whole and readable */
	ZONE_PRIVATE, /* belongs to this run alone */
	ZONE_KERNEL,  /* /proc and /dev as the sandbox has them */
	ZONE_PARTIAL, /* only a few of its names are shown; programs try many others */
	ZONE_READ,    /* granted */
	ZONE_WRITE,
	ZONE_OUTSIDE,
};

/* Whether other things may be put at the place, or replace it. */
enum view_claim {
	/* the sandbox or the kernel owns the place and everything in it: no home and no decoy may
	 * be put there */
	VIEW_OURS = 1,
	VIEW_ITSELF = 2, /* the sandbox owns only the place itself; what lies in it is free */
	VIEW_STAYS = 4,  /* a grant of "/" for reading does not replace it */
	/* a root file system that the owner names (--rootfs) does not replace it */
	VIEW_ROOTFS = 8,
	VIEW_ALWAYS = 16, /* shown whole in every sandbox: nothing in it needs a grant */
};

struct view_row {
	const char *path;
	enum view_shown shown;
	enum zone zone;
	unsigned may;   /* LL_* rights beneath it; 0: the rights of the place that contains it */
	unsigned claim; /* bits of enum view_claim */
	const char *to; /* the target of a VIEW_LINK */
};

/* A directory comes before the rows beneath it. The rows with a zone come first. */
#define VIEW_ROWS 66
extern const struct view_row VIEW[VIEW_ROWS];

#define VIEW_ZONES 21 /* number of rows with a zone */

/* Returns the path without its first "/", to open it relative to the root's fd. */
static inline const char *view_name(const struct view_row *r)
{
	return r->path + 1;
}

/* True if the path is a place with one of these claims or lies in one. If VIEW_ITSELF is the only
 * one of these claims that a place has, only its own path counts. */
bool view_claimed(const char *path, unsigned claim);
/* True if the path is shown in every sandbox that has the host's system directories. */
static inline bool view_is_system(const char *path)
{
	return view_claimed(path, VIEW_ALWAYS);
}
/* Returns the rights beneath the row: its own rights, or the rights of the place that contains
 * it. */
unsigned view_may(const struct view_row *r);
/* True if the path lies in a directory that the run may change: a private directory of the table,
 * or the home. False for that directory itself. */
bool view_in_private(const struct ssb_plan *plan, const char *path);

#endif
