/* govern_tell.c - sends a governor what happens in a run.
 *
 * Nothing here waits. If a message cannot be sent now, violations and use are added up for a later
 * message. The names of connections are stored; until they are sent, no further names are read from
 * the egress. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/limits.h"
#include "os/clock.h"
#include "sandbox/govern_priv.h"

bool govern_say(const struct governed *g, const struct govern_msg *m)
{
	return send(g->fd, m, sizeof(*m), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 ||
	       (errno != EAGAIN && errno != EWOULDBLOCK && errno != ENOBUFS);
}

static bool any_violation(const struct governed *g)
{
	static const struct trace_tally none;

	return memcmp(&g->tally, &none, sizeof(none)) != 0;
}

static bool tell_violations(struct governed *g)
{
	struct govern_msg m = { .kind = GOVERN_VIOLATIONS };

	if (!any_violation(g)) {
		return true;
	}
	m.violations.total = g->tally.total;
	memcpy(m.violations.kinds, g->tally.kinds, sizeof(m.violations.kinds));
	memcpy(m.violations.classes, g->tally.classes, sizeof(m.violations.classes));
	if (!govern_say(g, &m)) {
		return false;
	}
	g->tally = (struct trace_tally){ 0 };
	return true;
}

static bool tell_connections(struct governed *g)
{
	size_t done = 0;

	while (done < g->n_names) {
		struct govern_msg m = { .kind = GOVERN_CONNECTION };
		memcpy(m.connection.name, g->names[done], sizeof(m.connection.name));
		if (!govern_say(g, &m)) {
			break;
		}
		done++;
	}
	if (done > 0) {
		g->n_names -= done;
		memmove(g->names, g->names + done, g->n_names * sizeof(*g->names));
	}
	return g->n_names == 0;
}

static bool tell_motion(struct governed *g)
{
	struct govern_msg m = { .kind = g->owes_stands ? GOVERN_STANDS : GOVERN_GOES };

	if ((g->owes_stands || g->owes_goes) && !govern_say(g, &m)) {
		return false;
	}
	g->owes_stands = g->owes_goes = false;
	return true;
}

static uint64_t wall_ms(const struct run *r)
{
	const struct pause *p = &r->pause;
	uint64_t until = p->motion == GOES ? clock_us() : p->since_us;
	uint64_t start = r->govern->start_us;

	return start == 0 ? 0 : (until - start - p->paused_us) / 1000;
}

bool govern_tell_used(struct run *r)
{
	struct governed *g = r->govern;
	struct govern_msg m = { .kind = GOVERN_USED };
	struct used now = { .cpu_ms = g->meter.us / 1000, .wall_ms = wall_ms(r) };

	egress_bytes(&r->egress, &now.bytes_out, &now.bytes_in);
	if (memcmp(&now, &g->told, sizeof(now)) == 0) {
		return true;
	}
	m.used.cpu_ms = now.cpu_ms;
	m.used.wall_ms = now.wall_ms;
	m.used.bytes_out = now.bytes_out;
	m.used.bytes_in = now.bytes_in;
	if (!govern_say(g, &m)) {
		return false;
	}
	g->told = now;
	return true;
}

/* With thousands of processes a measurement takes long. So the next measurement comes only after 20
 * times the time that this one took. */
void govern_look_and_tell(struct run *r)
{
	struct governed *g = r->govern;
	uint64_t start = clock_ms();

	if (r->pause.motion != STANDS && !r->dead) {
		meter_look(&g->meter, r->pid, r->cgroup);
	}
	(void)govern_tell_used(r);
	uint64_t now = clock_ms();
	uint64_t cost = (now - start) * 20;
	g->used_at = now + (cost > GOVERN_TICK_MS ? cost : GOVERN_TICK_MS);
}

void govern_keep_name(void *arg, const char *name)
{
	struct governed *g = arg;

	if (g->n_names == g->room) {
		size_t room = g->room > 0 ? g->room * 2 : 16;
		void *grown = room <= MAX_GOVERN_NAMES
		                      ? reallocarray(g->names, room, sizeof(*g->names))
		                      : NULL;
		if (grown == NULL) {
			return;
		}
		g->names = grown;
		g->room = room;
	}
	snprintf(g->names[g->n_names++], sizeof(*g->names), "%s", name);
}

bool govern_owes(const struct governed *g)
{
	return g->n_names > 0 || g->owes_stands || g->owes_goes || any_violation(g);
}

bool govern_tell(struct governed *g)
{
	return tell_connections(g) && tell_violations(g) && tell_motion(g);
}
