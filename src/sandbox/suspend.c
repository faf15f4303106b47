/* suspend.c - see suspend.h. */
#include "sandbox/suspend.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/clone.h"
#include "sandbox/supervise.h"

/* The time between two checks whether the run is in the foreground again. They are needed because
 * `fg` sends no signal to a job that is running. */
#define LOOK_MS 200

void suspend_copy_window(const struct run *r, bool always)
{
	struct winsize size;

	if (r->master < 0 || ioctl(r->request->stdio[0], TIOCGWINSZ, &size) != 0) {
		return;
	}
	if (always) {
		/* The kernel sends SIGWINCH only if something changed, so change a member that no
		 * program uses. */
		struct winsize other = size;
		other.ws_xpixel ^= 1;
		(void)ioctl(r->master, TIOCSWINSZ, &other);
	}
	(void)ioctl(r->master, TIOCSWINSZ, &size);
}

/* A terminal that is not the controlling terminal has no foreground. */
static bool is_foreground(int terminal)
{
	pid_t group = tcgetpgrp(terminal);

	return group < 0 || group == getpgrp();
}

static void take_terminal(struct run *r)
{
	struct suspend *s = &r->suspend;

	s->background = s->terminal >= 0 && !is_foreground(s->terminal);
	s->look_at = s->background ? clock_ms() + LOOK_MS : 0;
	if (s->terminal < 0 || s->background || !r->config.pty) {
		return;
	}
	if (tcgetattr(s->terminal, &s->before) == 0) {
		struct termios raw = s->before;
		cfmakeraw(&raw);
		s->raw = tcsetattr(s->terminal, TCSADRAIN, &raw) == 0;
	}
}

static void restore_terminal(struct suspend *s)
{
	/* From the background this would stop the supervisor. */
	if (s->raw && is_foreground(s->terminal)) {
		(void)tcsetattr(s->terminal, TCSADRAIN, &s->before);
	}
	s->raw = false;
}

void suspend_init(struct run *r)
{
	int input = r->request->stdio[0];

	r->suspend = (struct suspend){ .terminal = isatty(input) == 1 ? input : -1 };
	take_terminal(r);
}

void suspend_done(struct run *r)
{
	restore_terminal(&r->suspend);
}

void suspend_ask(struct run *r, bool by_skill)
{
	if (r->ended || r->dead || r->killed || r->canceled != 0) {
		return;
	}
	r->suspend.wanted = true;
	r->suspend.group = r->suspend.group || by_skill;
	pause_begin(r, PAUSE_BY_TERMINAL);
}

/* Stops the supervisor until it gets SIGCONT. The signal is blocked until here. In an orphaned
 * process group, where no shell could continue it, the kernel ignores the signal. */
static void stop_self(bool group)
{
	sigset_t stop;

	sigemptyset(&stop);
	sigaddset(&stop, SIGTSTP);
	(void)kill(group ? 0 : getpid(), SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &stop, NULL);
	sigprocmask(SIG_BLOCK, &stop, NULL);
}

/* A program restores the screen before it stops, so its output must be on the terminal before the
 * shell writes there. */
static bool is_shown(const struct run *r, const struct pump *output)
{
	struct pollfd p = { .fd = r->master, .events = POLLIN };

	return r->master < 0 || pump_finished(output) ||
	       (output->len == 0 && poll(&p, 1, 0) >= 0 && (p.revents & POLLIN) == 0);
}

static void stop_until_continued(struct run *r)
{
	struct suspend *s = &r->suspend;
	struct msg m = { .kind = MSG_SIGNAL, .signal = SIGCONT };

	restore_terminal(s);
	stop_self(s->group);
	s->wanted = s->group = false;
	take_terminal(r);
	pause_end(r, PAUSE_BY_TERMINAL);
	s->waking = r->config.pty && msg_fds_send(r->ctl, &m, sizeof(m), NULL) == 0;
	suspend_copy_window(r, true);
}

uint64_t suspend_due(const struct run *r)
{
	return r->suspend.look_at;
}

void suspend_turn(struct run *r, const struct pump *output)
{
	struct suspend *s = &r->suspend;

	if (s->look_at != 0 && clock_ms() >= s->look_at) {
		take_terminal(r);
		if (!s->background) {
			suspend_copy_window(r, true);
		}
	}
	if (s->wanted && (r->ended || r->dead || r->killed)) {
		s->wanted = false;
		pause_end(r, PAUSE_BY_TERMINAL);
	}
	if (s->wanted && r->pause.motion == STANDS && is_shown(r, output)) {
		stop_until_continued(r);
	}
}
