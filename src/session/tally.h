/* tally.h - counts the usage of a run that the store does not contain yet, without I/O.
 * tally_take() gives a numbered report. If it is unknown whether the store has the report,
 * tally_settled(false) makes tally_take() give the same report again, unchanged. So nothing is
 * lost, and nothing is counted twice. */
#ifndef SESSION_TALLY_H
#define SESSION_TALLY_H

#include "base/limits.h"
#include "sandbox/govern.h"
#include "session/session.h"

struct tally_part {
	uint64_t meters[SESSION_METERS];
	uint64_t kinds[EV_COUNT];
	uint64_t classes[CLASS_COUNT];
	uint64_t total; /* all violations */
};

struct tally {
	struct tally_part open;  /* usage that is not reported yet */
	struct tally_part taken; /* the report on its way to the store */
	uint64_t seen[SESSION_METERS];
	/* Contacted names. The store has the names in [0, known); the names in [known, taken_names)
	 * are being reported. */
	char (*names)[256];
	size_t n_names;
	size_t known;
	size_t taken_names;
	bool is_taken;
	bool again;      /* `taken` must be reported again */
	uint64_t report; /* number of the report `taken` */
	bool urgent;     /* `open` must be reported at once */
	const char *list[MAX_TALLY_NAMES];
};

/* Allocates t->names, which is never freed: a keeper ends with its run. */
int tally_init(struct tally *t, struct ssb_error *err);

/* Adds one message of the supervisor. Messages without counts are ignored. */
void tally_hear(struct tally *t, const struct govern_msg *m);
/* Returns true if there is no room for another name. New names are dropped until the next
 * tally_settled(). */
bool tally_full(const struct tally *t);
bool tally_empty(const struct tally *t);
/* Returns true if tally_take() gives the last report again, which does not include newer usage. */
bool tally_repeats(const struct tally *t);
/* Returns true if the usage must be reported at once, because of a violation, a new name, or a
 * meter that has used half of its `room`. */
bool tally_urgent(const struct tally *t, const uint64_t room[SESSION_METERS]);

/* Gives the next report. The previous report must have been settled. `ret` borrows from `t`. */
void tally_take(struct tally *t, struct session_usage *ret);
void tally_settled(struct tally *t, bool stored);

#endif
