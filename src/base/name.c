/* name.c - the tables of the names of public enums, and the search for a name. */
#include "base/name.h"

#include <stdint.h>
#include <string.h>

#include "base/own.h"

static const char *const ENDS[] = {
	[SSB_END_EXITED] = "exited",     /* the skill exited */
	[SSB_END_SIGNALED] = "signaled", /* a signal ended the skill */
	[SSB_END_TIMEOUT] = "timeout",   /* the time limit ended the skill */
	[SSB_END_MEMORY] = "memory",     /* the memory limit ended the skill */
	[SSB_END_CANCELED] = "canceled", /* the caller ended the run */
	[SSB_END_SESSION] = "session",   /* a rule of the run's session ended the run */
};

static const char *const CODES[] = {
	[SSB_OK] = "ok",
	[SSB_E_USAGE] = "usage",
	[SSB_E_MANIFEST] = "manifest",
	[SSB_E_POLICY] = "policy",
	[SSB_E_LAYER] = "layer",
	[SSB_E_LIMIT] = "limit",
	[SSB_E_NOT_FOUND] = "not_found",
	[SSB_E_NOT_EXEC] = "not_exec",
	[SSB_E_SYS] = "system",
	[SSB_E_NOMEM] = "no_memory",
};

static const char *const SEVERITIES[] = {
	[SSB_NOTE] = "note",
	[SSB_WARNING] = "warning",
	[SSB_ALARM] = "alarm",
	[SSB_ERROR] = "error",
};

const char *name_of_end(enum ssb_end end)
{
	return ENDS[end];
}

int name_to_end(const char *name)
{
	size_t i = name_index(name, ENDS, ARRAY_LEN(ENDS), sizeof(ENDS[0]));

	return i < ARRAY_LEN(ENDS) ? (int)i : -1;
}

const char *name_of_code(enum ssb_code code)
{
	return CODES[code];
}

const char *name_of_finding(enum ssb_severity severity)
{
	return SEVERITIES[severity];
}

size_t name_index(const char *name, const char *const *names, size_t n, size_t stride)
{
	size_t i = 0;

	while (i < n && name != NULL &&
	       strcmp(*(const char *const *)((uintptr_t)names + i * stride), name) != 0) {
		i++;
	}
	return name != NULL ? i : n;
}
