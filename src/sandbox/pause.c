/* pause.c - see pause.h. */
#include "sandbox/pause.h"

#include "os/clock.h"
#include "os/clone.h"
#include "sandbox/governed.h"

#define LOOK_MS 2 /* time between two checks whether the group is frozen */

static void mark_stands(struct run *r)
{
	r->pause.motion = STANDS;
	r->pause.look_at = 0;
	governed_paused(r);
}

static void start_pause(struct run *r)
{
	struct pause *p = &r->pause;
	struct msg m = { .kind = MSG_PAUSE };
	uint64_t now = clock_ms();

	p->since_us = clock_us();
	p->motion = STOPS;
	p->time_left = r->deadline > now ? r->deadline - now : 1;
	r->deadline = 0;
	if (r->ended || r->dead) {
		mark_stands(r); /* every process has ended already */
		return;
	}
	p->by_group = cgroup_freezes(r->cgroup) && cgroup_freeze(r->cgroup, true) == 0;
	p->look_at = p->by_group ? now + LOOK_MS : 0;
	m.pause.number = ++p->number;
	m.pause.by_signals = !p->by_group;
	(void)msg_fds_send(r->ctl, &m, sizeof(m), NULL);
}

void pause_begin(struct run *r, enum pause_reason why)
{
	r->pause.reasons |= why;
	if (r->started && r->pause.motion == GOES) {
		start_pause(r);
	}
}

void pause_started(struct run *r)
{
	if (r->pause.reasons != 0) {
		start_pause(r);
	}
}

/* Restarts the clock of the time limit first, and then the processes. */
void pause_end_all(struct run *r)
{
	struct pause *p = &r->pause;
	struct msg m = { .kind = MSG_RESUME };

	p->reasons = 0;
	if (p->motion == GOES) {
		return;
	}
	p->paused_us += clock_us() - p->since_us;
	p->motion = GOES;
	p->look_at = 0;
	r->deadline = clock_ms() + p->time_left;
	if (!r->ended && !r->dead) {
		(void)msg_fds_send(r->ctl, &m, sizeof(m), NULL);
	}
	if (p->by_group) {
		(void)cgroup_freeze(r->cgroup, false);
		p->by_group = false;
	}
}

void pause_end(struct run *r, enum pause_reason why)
{
	r->pause.reasons &= ~(unsigned)why;
	if (r->pause.reasons == 0) {
		pause_end_all(r);
	}
}

void pause_stands(struct run *r, uint32_t number)
{
	const struct pause *p = &r->pause;

	if (p->motion == STOPS && !p->by_group && number == p->number) {
		mark_stands(r);
	}
}

uint64_t pause_due(const struct run *r)
{
	return r->pause.look_at;
}

void pause_tick(struct run *r)
{
	uint64_t now = clock_ms();

	if (r->pause.look_at == 0 || now < r->pause.look_at) {
		return;
	}
	r->pause.look_at = now + LOOK_MS;
	if (r->ended || r->dead || cgroup_is_frozen(r->cgroup)) {
		mark_stands(r);
	} else {
		observer_release(r->observer);
	}
}

void pause_let_die(struct run *r)
{
	if (r->pause.motion != GOES && r->pause.by_group) {
		cgroup_end_frozen(r->cgroup);
	}
}
