/* worker.c - contains the text of python/skillsandbox/_worker.py, and checks whether a plan needs
 * it. */
#include "base/string_list.h"
#include "sandbox/root.h"
#include "sandbox/worker_py.h"

const char *const WORKER_TEXT = WORKER_PY;

bool worker_named(const struct ssb_plan *plan)
{
	return string_list_has(&plan->argv, SKILL_WORKER);
}
