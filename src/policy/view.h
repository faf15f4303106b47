/* view.h - what every sandbox shows, whatever is granted: one table.
 *
 * Derived from it: mounts, Landlock rules, what the observer says about a path, what a grant of
 * "/" leaves out, where a home may be and where decoys may stand. tests/unit/test_view builds a
 * sandbox and compares it with the table, entry by entry. Grants and the private home come on
 * top; they are part of the plan. */
#ifndef POLICY_VIEW_H
#define POLICY_VIEW_H

#include <stdbool.h>
#include <stddef.h>

#include "policy/plan.h"

/* What is at a path. */
enum view_shown {
	VIEW_NOTHING, /* nothing; the row serves another column */
	VIEW_DIR,     /* a directory of the root, read-only */
	VIEW_PRIVATE, /* a directory of this run alone, which it may change */
	VIEW_KERNEL,  /* a file system that the kernel makes for this sandbox */
	VIEW_HOST,    /* the host's, read-only; a symlink is copied, a missing path is left out */
	VIEW_DEVICE,  /* the host's device node */
	VIEW_FILE,    /* a file of ours, read-only */
	VIEW_LINK,    /* a symlink of ours, to `to` */
	VIEW_MASKED,  /* a file of the kernel that reads as empty */
};

/* How the observer treats a path in it. */
enum zone {
	ZONE_AROUND,  /* like the place that contains it */
	ZONE_SYSTEM,  /* the host's, whole, readable */
	ZONE_PRIVATE, /* the run's own */
	ZONE_KERNEL,  /* /proc and /dev as the sandbox has them */
	ZONE_PARTIAL, /* the sandbox has a few of its names; programs try many */
	ZONE_READ,    /* granted */
	ZONE_WRITE,
	ZONE_OUTSIDE,
};

/* What else may use the place. */
enum view_claim {
	VIEW_OURS = 1, /* the sandbox's or the kernel's, with everything in it: no home, no decoy */
	VIEW_ITSELF = 2,  /* only the place itself is; what lies in it is free */
	VIEW_STAYS = 4,   /* the sandbox's own even if "/" is granted for reading */
	VIEW_ROOTFS = 8,  /* the sandbox's own even with a root file system of the owner */
	VIEW_ALWAYS = 16, /* shown whole in every sandbox: nothing in it needs a grant */
};

struct view_row {
	const char *path;
	enum view_shown shown;
	enum zone zone;
	unsigned may;   /* LL_* beneath it; 0: those of the place that contains it */
	unsigned claim; /* of enum view_claim */
	const char *to; /* VIEW_LINK */
};

/* Parents before children. The rows with a zone come first. */
#define VIEW_ROWS 65
extern const struct view_row VIEW[VIEW_ROWS];

#define VIEW_ZONES 21 /* number of rows with a zone */

/* Returns the path without its first "/", as it is opened from the root's fd. */
static inline const char *view_name(const struct view_row *r)
{
	return r->path + 1;
}

/* True if the path is such a place or lies in one (VIEW_ITSELF: is one). */
bool view_claimed(const char *path, unsigned claim);
/* True if it is shown whole in every sandbox that has the host's system directories. */
static inline bool view_is_system(const char *path)
{
	return view_claimed(path, VIEW_ALWAYS);
}
/* Returns the rights beneath the row: its own, or those of the place that contains it. */
unsigned view_may(const struct view_row *r);
/* True if the run may change what is in it: its own by the table, or its home. The place itself
 * does not count. */
bool view_in_private(const struct ssb_plan *plan, const char *path);

#endif
