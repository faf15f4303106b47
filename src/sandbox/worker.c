/* worker.c - contains the text of python/skillsandbox/_worker.py, and checks whether a plan needs
 * it. */
#include <string.h>

#include "sandbox/root.h"
#include "sandbox/worker_py.h"

const char *const WORKER_TEXT = WORKER_PY;

bool worker_named(const struct ssb_plan *plan)
{
	for (size_t i = 0; i < plan->argv.n; i++) {
		if (strcmp(plan->argv.v[i], SKILL_WORKER) == 0) {
			return true;
		}
	}
	return false;
}
