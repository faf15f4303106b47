/* run_otel.c - see run_otel.h. */
#include "cli/run_otel.h"

#include <fcntl.h>
#include <stdio.h>

#include "otel/otel.h"
#include "base/own.h"
#include "cli/say.h"

/* Opens the record a second time. A duplicate of `record` would share the lock that shows that the
 * run is running, so a test of that lock would release it. */
static void on_record(void *arg, int record)
{
	struct run_otel *o = arg;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", record);
	o->record = open(path, O_RDONLY | O_CLOEXEC);
}

void run_otel_begin(struct run_otel *o, struct run_request *q)
{
	struct ssb_error err = { 0 };

	if (otel_config_load(&o->config, q->owner, &err) != 0) {
		say_warningf("--otel: %s: %s; nothing will be exported", err.where, err.text);
		return;
	}
	o->on = true;
	o->owner = q->owner;
	run_request_watch(q, (struct ssb_watch){ on_record, o });
}

void run_otel_end(struct run_otel *o)
{
	if (!o->on) {
		return;
	}
	if (o->record >= 0) {
		otel_start(o->record, &o->config, o->owner);
	}
	own_close(&o->record);
	otel_config_done(&o->config);
	o->on = false;
}
