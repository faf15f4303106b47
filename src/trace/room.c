/* room.c - defines the table of rooms, and decides to which room an event belongs. */
#include "trace/room.h"

#include <assert.h>

#include "trace/trace_limits.h"
#include "base/own.h"

#define KIB(n) ((size_t)(n) << 10)
#define MIB(n) ((size_t)(n) << 20)

/* A room for violations: those of one class, or those that belong to no class. */
/* clang-format off */
#define CLASS_ROOM(name) \
	{ name, KIB(16), { { 800, KIB(1600) }, { 100, KIB(200) }, { 20, KIB(17) } } }
/* clang-format on */

/* Together with TRACE_RESERVE_*, the parts of the record must add up to TRACE_MAX_LINES and
 * TRACE_MAX_BYTES. The parts of the document must add up to MAX_TRACE_EVENTS and
 * DOCUMENT_EVENT_BYTES, and the parts of its violations to TRACE_MAX_VIOLATIONS and
 * TRACE_VIOLATION_BYTES (test_rooms checks this). A class that is only derived from others has no
 * events, and so no room here. */
const struct room_info ROOMS[ROOM_COUNT + 1] = {
	[ROOM_FRAME] = { "frame", TRACE_LINE_BYTES, { { 64, MIB(2) }, { 64, MIB(1) } } },
	[ROOM_TOTAL] = { "totals", KIB(8), { { 1024, MIB(8) }, { 1024, MIB(2) } } },
	[ROOM_CONNECTION] = { "connections", KIB(8), { { 16384, MIB(12) }, { 1000, MIB(2) } } },
	[ROOM_EXEC] = { "execs", KIB(16), { { 8192, MIB(10) }, { 500, MIB(2) } } },
	[ROOM_CHANGE] = { "changes", KIB(16), { { 16384, MIB(10) }, { 1000, MIB(2) } } },
	[ROOM_READ] = { "reads", KIB(4), { { 8192, MIB(6) }, { 250, MIB(1) } } },
	[ROOM_OUTPUT] = { "output", TRACE_LINE_BYTES, { { 8192, MIB(8) }, { 500, MIB(2) } } },
	[ROOM_OTHER] = { "other", KIB(4), { { 8192, MIB(4) }, { 250, MIB(1) } } },
	[ROOM_VIOLATION] = CLASS_ROOM("violations"),
	[ROOM_CLASS + CLASS_CREDENTIAL_HARVESTING] = CLASS_ROOM("credential_harvesting"),
	[ROOM_CLASS + CLASS_PRIVILEGE_ESCALATION] = CLASS_ROOM("privilege_escalation"),
	[ROOM_CLASS + CLASS_SANDBOX_EVASION] = CLASS_ROOM("sandbox_evasion"),
	[ROOM_CLASS + CLASS_PERSISTENCE] = CLASS_ROOM("persistence"),
	[ROOM_CLASS + CLASS_COMMAND_AND_CONTROL] = CLASS_ROOM("command_and_control"),
	[ROOM_CLASS + CLASS_UNAUTHORIZED_FILE_ACCESS] = CLASS_ROOM("unauthorized_file_access"),
	[ROOM_CLASS + CLASS_DATA_EXFILTRATION] = CLASS_ROOM("data_exfiltration"),
	[ROOM_CLASS + CLASS_RESOURCE_ABUSE] = CLASS_ROOM("resource_abuse"),
	[ROOM_CLASS + CLASS_DISCOVERY] = CLASS_ROOM("discovery"),
	[ROOM_COMMON] = { "",
	                  0,
	                  { { 121216, KIB(51584) }, { 4412, KIB(17456) }, { 1000, KIB(256) } } },
};

/* Returns the room of a file that the plan allows. A file without a rule may be anywhere, so it is
 * treated like a file in a granted place. */
static enum room room_of_file(const struct event *e)
{
	if (e->status == STATUS_ABSENT) {
		return ROOM_OTHER;
	}
	if (e->kind == EV_FILE_WRITE) {
		/* Every write counts as a change unless it is in a private place. This includes a
		 * file without a name, which is reported by its link in /proc, but may be in a
		 * granted place. */
		return e->rule == RULE_PRIVATE ? ROOM_OTHER : ROOM_CHANGE;
	}
	return e->rule == RULE_NONE || e->rule == RULE_ENTRY ? ROOM_READ : ROOM_OTHER;
}

enum room room_of(const struct event *e, enum class_id class)
{
	if (e->violation) {
		return class == CLASS_NONE ? ROOM_VIOLATION : (enum room)(ROOM_CLASS + (int)class);
	}
	switch (e->kind) {
	case EV_SKILL_STARTED:
	case EV_SKILL_COMPLETED:
	case EV_SKILL_FAILED:
	case EV_NETWORK_POLICY_APPLIED:
	case EV_NETWORK_POLICY_REMOVED:
	case EV_ENV_VAR_ACCESS:
	case EV_EXIT_CODE:
		return ROOM_FRAME;
	case EV_RESOURCE_LIMIT_HIT: /* without `op`: a limit of the run; otherwise a limit of the
	                               broker */
		return e->op == OP_NONE ? ROOM_FRAME : ROOM_CONNECTION;
	case EV_NETWORK_EGRESS_TOTAL:
		return ROOM_TOTAL;
	case EV_DNS_RESOLUTION:
	case EV_NETWORK_EGRESS_ALLOWED:
	case EV_NETWORK_EGRESS_BLOCKED:
		/* An event without a status comes from the broker, one with a status from the
		 * observer. A skill can make any number of different events of the observer,
		 * because it chooses their ports and addresses. So they must not fill the room of
		 * the broker's events. */
		return e->status == STATUS_NONE ? ROOM_CONNECTION : ROOM_OTHER;
	case EV_PROCESS_SPAWNED:
		return e->status == STATUS_ABSENT ? ROOM_OTHER : ROOM_EXEC;
	case EV_STDOUT:
	case EV_STDERR:
		return ROOM_OUTPUT;
	case EV_FILE_READ:
	case EV_FILE_WRITE:
		return room_of_file(e);
	case EV_FILE_BLOCKED: /* here only refusals that are not violations */
	case EV_SYSCALL_FILTERED:
	case EV_SYSCALL_BLOCKED:
	case EV_POLICY_VIOLATION:
	case EV_RUN ... EV_OTHER: /* not events */
		break;
	}
	return ROOM_OTHER;
}

bool room_matters(enum room r)
{
	return r != ROOM_OTHER && r != ROOM_READ && r != ROOM_OUTPUT;
}

static bool has_place(const struct rooms *r, enum room room, size_t bytes, enum room_place place)
{
	const struct room_part *most = &ROOMS[room].parts[place];

	return r->used[room].lines < most->lines && bytes <= most->bytes - r->used[room].bytes;
}

bool rooms_left(const struct rooms *r, enum room room, enum room_place place)
{
	return has_place(r, ROOM_COMMON, 0, place) || has_place(r, room, 0, place);
}

bool rooms_take(struct rooms *r, enum room room, size_t bytes, enum room_place place)
{
	assert((unsigned)room < ROOM_COUNT && (unsigned)place < PLACE_COUNT);
	enum room from = has_place(r, ROOM_COMMON, bytes, place) ? ROOM_COMMON : room;

	if (!has_place(r, from, bytes, place)) {
		return false;
	}
	r->used[from].lines++;
	r->used[from].bytes += bytes;
	return true;
}
