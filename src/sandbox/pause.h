/* pause.h - stops every process of a run, and lets them continue.
 *
 * The freezer of the control group stops them or, without one, init does it by signals (still.h).
 * The clock of the time limit stands still during a pause. A run can be paused for both reasons at
 * once; it continues when none is left. */
#ifndef SANDBOX_PAUSE_H
#define SANDBOX_PAUSE_H

#include <stdbool.h>
#include <stdint.h>

struct run;

enum motion { GOES, STOPS, STANDS };
enum pause_reason { PAUSE_BY_GOVERNOR = 1, PAUSE_BY_TERMINAL = 2 };

struct pause {
	enum motion motion;
	unsigned reasons; /* bits of enum pause_reason; they may be set before the skill starts */
	bool by_group;
	uint32_t number; /* number of the current pause; the first has 1 */
	uint64_t since_us;
	uint64_t paused_us; /* length of all pauses that are over */
	uint64_t look_at;
	uint64_t time_left; /* how many ms were left until run.deadline when the pause began */
};

/* Pauses the run. A run whose skill has not started yet is paused as soon as it starts. */
void pause_begin(struct run *r, enum pause_reason why);
/* Removes the reason, and lets the run continue if it was the last one. */
void pause_end(struct run *r, enum pause_reason why);
void pause_end_all(struct run *r);

/* Call it when the skill starts, and when init reports that every process has stopped in the pause
 * `number`. */
void pause_started(struct run *r);
void pause_stands(struct run *r, uint32_t number);

/* Returns when to call pause_tick(), in clock_ms(); 0: never. */
uint64_t pause_due(const struct run *r);
void pause_tick(struct run *r);

/* Call it after all processes got SIGKILL: thaws frozen processes, which could not die
 * otherwise. */
void pause_let_die(struct run *r);

#endif
