/* suspend.h - the caller's terminal, and Ctrl-Z: the run stops, and so does the supervisor, so that
 * the caller's shell gets its terminal back. `fg` and `bg` of the shell continue both.
 *
 * With a terminal of its own, the skill's first process stops itself, and init reports it. Without
 * one, Ctrl-Z sends SIGTSTP to the supervisor. In both cases the whole run is paused first
 * (pause.h), because its clock stands still meanwhile. */
#ifndef SANDBOX_SUSPEND_H
#define SANDBOX_SUSPEND_H

#include <stdbool.h>
#include <stdint.h>
#include <termios.h>

struct run;
struct pump;

struct suspend {
	int terminal; /* the caller's terminal on standard input; borrowed; -1: none */
	bool raw;     /* its mode was changed; `before` is the old mode */
	struct termios before;
	/* another job of the caller's shell has the terminal: it must not be read or changed */
	bool background;
	uint64_t look_at; /* in the background: when to look at the terminal again; else 0 */
	bool waking;      /* the skill gets SIGCONT: no typed byte may overtake it */
	bool wanted; /* the supervisor must stop as soon as every process of the run has stopped */
	bool group;  /* its whole process group must stop, as if Ctrl-Z had been typed there */
};

/* Takes the terminal for the run: if the skill has a terminal of its own, sets raw mode, so that
 * all bytes pass unchanged. suspend_done() restores the mode. */
void suspend_init(struct run *r);
void suspend_done(struct run *r);

/* Asks for a stop: the skill's first process has stopped itself, or the supervisor got SIGTSTP. */
void suspend_ask(struct run *r, bool by_skill);

/* Returns when to call suspend_turn() at the latest, in clock_ms(); 0: never. */
uint64_t suspend_due(const struct run *r);
/* Call it at the end of each turn of the loop. `output` is the pump from the skill's terminal. If a
 * stop is due, returns only after the caller's shell has continued the supervisor. */
void suspend_turn(struct run *r, const struct pump *output);

/* Gives the skill's terminal the size of the caller's. With `always` its programs get SIGWINCH even
 * if the size is the same, so that they draw their screen again. */
void suspend_copy_window(const struct run *r, bool always);

#endif
