/* trace.c - measures events per second of trace_add(), the size of a line, and the speed of
 * verification.
 *
 * Usage: bench_trace STATE_DIR [EVENTS]. Each kind of load is measured in its own run: distinct
 * attempts (each gets a line; the document contains only the first ones), denied attempts, equal
 * attempts (which are only counted), and lines of output. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/key.h"
#include "trace/trace.h"
#include "trace/verify.h"
#include "os/clock.h"

static void distinct(struct trace *t, int i)
{
	char path[96];
	int n = snprintf(path, sizeof(path), "/usr/lib/python3.11/site-packages/module%d.py", i);

	trace_add(t, &(struct event){ .kind = EV_FILE_READ,
	                              .status = STATUS_ASKED,
	                              .op = OP_OPEN,
	                              .pid = 7,
	                              .ppid = 1,
	                              .program = { "/usr/bin/python3.11", 19 },
	                              .path = { path, (size_t)n },
	                              .mode = MODE_READ,
	                              .rule = RULE_SYSTEM });
}

static void denied(struct trace *t, int i)
{
	char path[96];
	int n = snprintf(path, sizeof(path), "/home/user/.ssh/id_%d", i);

	trace_add(t, &(struct event){ .kind = EV_FILE_BLOCKED,
	                              .status = STATUS_DENIED,
	                              .violation = true,
	                              .op = OP_OPEN,
	                              .pid = 7,
	                              .ppid = 1,
	                              .program = { "/usr/bin/python3.11", 19 },
	                              .path = { path, (size_t)n },
	                              .mode = MODE_READ,
	                              .reason = REASON_CREDENTIAL_STORE,
	                              .error = 13 });
}

static void equal(struct trace *t, int i)
{
	distinct(t, i % 100);
}

static void output(struct trace *t, int i)
{
	char line[64];
	int n = snprintf(line, sizeof(line), "line %d of what the skill prints", i);

	trace_event(t, EV_STDOUT, line, (size_t)n);
}

static const struct load {
	const char *name;
	void (*add)(struct trace *t, int i);
} LOADS[] = {
	{ "distinct attempts", distinct },
	{ "denied attempts", denied },
	{ "equal attempts", equal },
	{ "lines of output", output },
};

static uint64_t cpu_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* Verifies the record, which must be valid. Returns the speed in MB/s. */
static double checked(const char *path, const struct owner *owner)
{
	struct verify_result got;
	struct ssb_error err = { 0 };
	uint8_t key[VERIFY_KEY_BYTES];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t start = clock_us();

	if (fd < 0 || trace_key_public(owner, key, &err) != 0 ||
	    verify_record(fd, &(struct verify_ask){ .key = key, .run_id = "" }, &got, &err) != 0 ||
	    got.state != VERIFY_COMPLETE) {
		fprintf(stderr, "bench: %s is not complete: %s\n", path, err.text);
		exit(1);
	}
	uint64_t end = clock_us();
	(void)close(fd);
	return (double)got.bytes / (double)(end - start);
}

static int measure(const struct load *load, const struct owner *owner, int events)
{
	struct ssb_plan plan = { .name = "bench", .version = "1", .workdir = "/", .home = "/" };
	struct ssb_error err = { 0 };
	struct trace *t = NULL;
	struct stat st;
	char path[5000];

	if (trace_open(&plan, NULL, owner, &t, &err) != 0 || trace_sync(t, &err) != 0) {
		fprintf(stderr, "%s: %s\n", err.where, err.text);
		return 1;
	}
	trace_place(t);
	uint64_t start = clock_us();
	uint64_t cpu = cpu_us();
	for (int i = 0; i < events; i++) {
		load->add(t, i);
	}
	uint64_t added = clock_us();
	cpu = cpu_us() - cpu;
	snprintf(path, sizeof(path), "%sl", trace_path(t));
	if (trace_close(t, NULL, NULL, &err) != 0) {
		fprintf(stderr, "%s: %s\n", err.where, err.text);
		return 1;
	}
	uint64_t closed = clock_us();
	trace_free(t);
	printf("%-18s %9.0f events/s, %9.0f per second of processor time, %5.2f ms to end, "
	       "record %.1f MB, verified at %.0f MB/s\n",
	       load->name, events * 1e6 / (double)(added - start), events * 1e6 / (double)cpu,
	       (double)(closed - added) / 1000, stat(path, &st) == 0 ? (double)st.st_size / 1e6 : 0,
	       checked(path, owner));
	return 0;
}

int main(int argc, char **argv)
{
	int events = argc > 2 ? atoi(argv[2]) : 120000; /* a record has room for this number */
	struct owner owner = { .home = "/", .state_dir = argv[1] };
	int rc = argc < 2;

	for (size_t i = 0; rc == 0 && i < sizeof(LOADS) / sizeof(LOADS[0]); i++) {
		rc = measure(&LOADS[i], &owner, events);
	}
	return rc;
}
