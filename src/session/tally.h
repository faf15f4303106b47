/* tally.h - what a run has used and the store does not know yet. Data in, data
 * out. What tally_take() gives is a report with a number. Where nobody knows
 * whether the store has it, tally_settled(false), the same report is given again,
 * unchanged: nothing is lost, nothing counts twice. */
#ifndef SESSION_TALLY_H
#define SESSION_TALLY_H

#include "base/limits.h"
#include "sandbox/govern.h"
#include "session/session.h"

struct tally_part {
	uint64_t meters[SESSION_METERS];
	uint64_t kinds[EV_COUNT];
	uint64_t classes[CLASS_COUNT];
	uint64_t total; /* violations */
};

struct tally {
	struct tally_part open;  /* to be told */
	struct tally_part taken; /* being told */
	uint64_t seen[SESSION_METERS];
	/* Names contacted: [0, known) the store has heard, [known, taken_names) it is
	 * being told. */
	char (*names)[256];
	size_t n_names;
	size_t known;
	size_t taken_names;
	bool is_taken;
	bool again;      /* `taken` is to be told once more */
	uint64_t report; /* the number of `taken` */
	bool urgent;     /* must not wait */
	const char *list[MAX_TALLY_NAMES];
};

int tally_init(struct tally *t, struct ssb_error *err);
void tally_done(struct tally *t);

/* One message of the supervisor; those that count nothing are passed over. */
void tally_hear(struct tally *t, const struct govern_msg *m);
/* No room for another name: nothing must be heard before the next settled(). */
bool tally_full(const struct tally *t);
bool tally_empty(const struct tally *t);
/* The next report is an old one: what came since is not in it. */
bool tally_repeats(const struct tally *t);
/* It must be told at once: a violation, a new name, or half of what `room`
 * leaves for a meter. */
bool tally_urgent(const struct tally *t, const uint64_t room[SESSION_METERS]);

/* Not before what was taken last is settled. `ret` borrows from `t`. */
void tally_take(struct tally *t, struct session_usage *ret);
void tally_settled(struct tally *t, bool stored);

#endif
