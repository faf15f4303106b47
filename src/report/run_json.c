/* run_json.c - writes the facts of a run as JSON. */
#include "report/run_json.h"

void run_json(struct json *j, const struct run_facts *f)
{
	json_open(j, '{');
	json_kstr(j, "run_id", f->id);
	json_kstr(j, "started", f->started);
	json_kstr(j, "skill_name", f->skill);
	json_kstr(j, "skill_version", f->version);
	json_kstr(j, "state", run_state_name(f->state));
	if (f->session[0] != '\0') {
		json_kstr(j, "session", f->session);
	}
	if (f->state == RUN_ENDED) {
		json_kstr(j, "end", f->end);
		json_kint(j, "exit_code", f->exit_code);
		json_kint(j, "duration_us", f->duration_us);
	}
	json_kint(j, "events", f->events);
	json_kint(j, "violations", f->violations);
	json_kstr(j, "severity", f->severity > 0 ? classes_severity_name(f->severity) : NULL);
	json_close(j, '}');
}
