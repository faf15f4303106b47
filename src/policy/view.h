/* view.h - what every sandbox shows, whatever is granted: the one table.
 *
 * Mounts, Landlock rules, what the observer says of a path, what a grant of "/" leaves out, where
 * a home may be and where decoys may stand are all derived from it. tests/unit/test_view builds a
 * sandbox and compares it with the table, entry by entry. Grants and the private home come on top:
 * they are the plan's. */
#ifndef POLICY_VIEW_H
#define POLICY_VIEW_H

#include <stdbool.h>
#include <stddef.h>

#include "policy/plan.h"

/* What stands at a path. */
enum view_shown {
	VIEW_NOTHING, /* nothing; the row says something else of the place */
	VIEW_DIR,     /* a directory of the root, which nothing can change */
	VIEW_PRIVATE, /* a directory that this run alone has, and may change */
	VIEW_KERNEL,  /* a file system that the kernel makes for this sandbox */
	VIEW_HOST,    /* the host's, read-only; a symlink is copied, what is missing is left out */
	VIEW_DEVICE,  /* the host's device node */
	VIEW_FILE,    /* a file of ours, read-only */
	VIEW_LINK,    /* a symlink of ours, to `to` */
	VIEW_MASKED,  /* of the kernel's: it reads as empty */
};

/* What the observer makes of a path in it. */
enum zone {
	ZONE_AROUND,  /* that of the place around it */
	ZONE_SYSTEM,  /* the host's, whole, to be read */
	ZONE_PRIVATE, /* the run's own */
	ZONE_KERNEL,  /* /proc and /dev, such as the sandbox has them */
	ZONE_PARTIAL, /* the sandbox has a few of its names; programs ask for many */
	ZONE_READ,    /* granted */
	ZONE_WRITE,
	ZONE_OUTSIDE,
};

/* Who may claim the place. */
enum view_claim {
	VIEW_OURS = 1,    /* the sandbox's or the kernel's, with all in it: no home, no decoy */
	VIEW_ITSELF = 2,  /* the place itself is, and what lies in it is free */
	VIEW_STAYS = 4,   /* it stays what it is where "/" is granted to be read; */
	VIEW_ROOTFS = 8,  /* also with a root file system of the owner's */
	VIEW_ALWAYS = 16, /* shown whole in every sandbox: nothing in it has to be granted */
};

struct view_row {
	const char *path;
	enum view_shown shown;
	enum zone zone;
	unsigned may;   /* LL_* beneath it; 0: what may be done around it */
	unsigned claim; /* of enum view_claim */
	const char *to; /* VIEW_LINK */
};

/* Parents before children. The rows that have a zone come first. */
#define VIEW_ROWS 65
extern const struct view_row VIEW[VIEW_ROWS];

#define VIEW_ZONES 21 /* so many rows have a zone */

/* The path without its first "/": as it is found from an open root. */
static inline const char *view_name(const struct view_row *r)
{
	return r->path + 1;
}

/* The path is such a place, or lies in one (VIEW_ITSELF: it is one). */
bool view_claimed(const char *path, unsigned claim);
/* Shown whole in every sandbox that has the host's system directories. */
static inline bool view_is_system(const char *path)
{
	return view_claimed(path, VIEW_ALWAYS);
}
/* What may be done beneath the row, by itself or by what lies around it. */
unsigned view_may(const struct view_row *r);
/* The run may change what is in it: its own, by the table or as its home; not the place itself. */
bool view_in_private(const struct ssb_plan *plan, const char *path);

#endif
