/* session.c - checks and settles of a session, as fast as possible.
 *
 *   session_bench bench SECONDS      compares pairs of check and settle with syncs of the disk
 *   session_bench start ID POLICY    starts a session with the policy in this file
 *   session_bench spend ID N MICROS  makes N checks of MICROS, and settles each allowed one
 *   session_bench hold ID N MICROS   makes N checks of MICROS without settling them
 *   session_bench settle N MICROS    settles reservation N
 *   session_bench kill ID            kills the session
 *   session_bench show ID            prints one line: state spent reserved actions
 *   session_bench ledger ID          prints the lines of its ledger
 *
 * `spend` and `hold` print a line after each step: "allowed N", "blocked N", "settled N". The
 * environment chooses the store. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "policy/owner.h"
#include "session/session.h"

#define SLICE  50
#define ROUNDS 4096
#define BLOCK  4096

static void die(const struct ssb_error *err)
{
	fprintf(stderr, "session_bench: %s: %s\n", err->where, err->text);
	exit(1);
}

/* ETIMEDOUT: other processes used the store during the whole time-out of our call (the disk may be
 * blocked). The call has changed nothing, so the caller tries again. */
static void be_patient(struct ssb_error *err)
{
	if (err->sys_errno != ETIMEDOUT) {
		die(err);
	}
	*err = (struct ssb_error){ 0 };
}

static double now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double cpu(void)
{
	struct rusage r;

	(void)getrusage(RUSAGE_SELF, &r);
	return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
	       (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

static void start(struct session_store *ss, const char *id, const char *file)
{
	struct ssb_error err = { 0 };
	struct session_policy policy = { 0 };
	struct ssb_diags *diags = ssb_diags_new();
	struct decision d;

	if (session_policy_load(file, &policy, diags, &err) != 0) {
		die(&err);
	}
	struct session_request req = { .id = id, .policy = &policy };
	if (session_start(ss, &req, &d, &err) != 0) {
		die(&err);
	}
	session_policy_done(&policy);
	ssb_diags_free(diags);
}

/* Writes the line at once and with one write(), so that a process that is killed later has already
 * reported this step. */
static void say(const char *what, int64_t n)
{
	char line[64];
	int len = snprintf(line, sizeof(line), "%s %" PRId64 "\n", what, n);

	if (write(STDOUT_FILENO, line, (size_t)len) != len) {
		exit(1);
	}
}

static void spend(struct session_store *ss, const char *id, long n, micros amount, bool settle)
{
	for (long i = 0; i < n; i++) {
		struct ssb_error err = { 0 };
		struct decision d;
		while (session_check(ss, id, "bench", amount, &d, &err) != 0) {
			be_patient(&err);
		}
		int64_t r = d.reservation;
		say(d.verdict.allowed ? "allowed" : "blocked", r);
		if (d.verdict.allowed && settle) {
			while (session_settle(ss, r, amount, &d, &err) != 0) {
				be_patient(&err);
			}
			say("settled", r);
		}
	}
}

static void show(struct session_store *ss, const char *id)
{
	struct ssb_error err = { 0 };
	struct session s;

	if (session_get(ss, id, &s, &err) != 0) {
		die(&err);
	}
	printf("%s %" PRId64 " %" PRId64 " %" PRIu64 "\n", session_state_name(s.state), s.spent,
	       s.reserved, s.actions);
}

static int put_line(void *arg, const char *line, size_t len)
{
	(void)arg;
	return fwrite(line, 1, len, stdout) == len ? 0 : -1;
}

/* Overwrites blocks of a file and syncs each block. No other synced write is less work for the
 * disk. */
static double sync_slice(int fd, const char *block)
{
	double begin = now();

	for (int i = 0; i < SLICE; i++) {
		if (pwrite(fd, block, BLOCK, (off_t)(i * BLOCK)) != BLOCK || fdatasync(fd) != 0) {
			perror("fdatasync");
			exit(1);
		}
	}
	return now() - begin;
}

/* Appends blocks to a file and syncs each block, as a log does. (sync_slice() overwrites them.) */
static double append_slice(int fd, const char *block)
{
	double begin = now();

	for (int i = 0; i < SLICE; i++) {
		if (write(fd, block, BLOCK) != BLOCK || fsync(fd) != 0) {
			perror("fsync");
			exit(1);
		}
	}
	return now() - begin;
}

static double pair_slice(struct session_store *ss, const char *id)
{
	double begin = now();

	for (int i = 0; i < SLICE; i++) {
		struct ssb_error err = { 0 };
		struct decision d;
		if (session_check(ss, id, "bench", 10, &d, &err) != 0 ||
		    session_settle(ss, d.reservation, 9, &d, &err) != 0) {
			die(&err);
		}
	}
	return now() - begin;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Each v[i] is the time of one slice. Returns the median slice's time for one operation. The caller
 * measures the kinds of slices in turns, so other load affects all of them equally. */
static double middle(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), by_size);
	return v[n / 2] / SLICE;
}

static int scratch(const struct owner *o, const char *name)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", o->state_dir, name);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0) {
		perror(path);
		exit(1);
	}
	return fd;
}

static void bench(struct session_store *ss, const struct owner *o, double seconds)
{
	struct ssb_error err = { 0 };
	struct session_policy policy = { 0 };
	struct ssb_diags *diags = ssb_diags_new();
	static const char YAML[] = "budget:\n  max_cost_per_session: 1000\nsession:\n"
	                           "  max_actions: 1000000000\n  max_duration: 24h\n";
	static char block[BLOCK];
	struct decision d;
	static double append[ROUNDS], sync[ROUNDS], pair[ROUNDS], used[ROUNDS];
	size_t n = 0;
	int fd = scratch(o, "bench.sync");
	int log = scratch(o, "bench.append");

	if (session_policy_parse("bench", YAML, strlen(YAML), &policy, diags, &err) != 0) {
		die(&err);
	}
	struct session_request req = { .policy = &policy };
	if (session_start(ss, &req, &d, &err) != 0) {
		die(&err);
	}
	(void)sync_slice(fd, block); /* gives the file its size */
	char id[SESSION_ID];
	memcpy(id, d.session, sizeof(id));
	for (double end = now() + seconds; n < ROUNDS && (n == 0 || now() < end); n++) {
		append[n] = append_slice(log, block);
		sync[n] = sync_slice(fd, block);
		double before = cpu();
		pair[n] = pair_slice(ss, id);
		used[n] = cpu() - before;
	}
	double a_append = middle(append, n);
	double a_sync = middle(sync, n);
	double a_pair = middle(pair, n);
	printf("| what | a second | check + settle, × this |\n|---|--:|--:|\n"
	       "| check + settle | %.0f | |\n"
	       "| fsync of 4 KiB, appended | %.0f | %.2f |\n"
	       "| fdatasync of 4 KiB, written over | %.0f | %.2f |\n\n"
	       "Processor time of a call: %.0f us\n",
	       1 / a_pair, 1 / a_append, a_append / a_pair, 1 / a_sync, a_sync / a_pair,
	       middle(used, n) / 2 * 1e6);
	(void)close(fd);
	(void)close(log);
	session_policy_done(&policy);
	ssb_diags_free(diags);
}

int main(int argc, char **argv)
{
	struct ssb_error err = { 0 };
	struct owner owner = { 0 };
	struct session_store *ss = NULL;
	struct decision d;
	const char *what = argc > 2 ? argv[1] : "";
	long n = argc > 3 ? strtol(argv[3], NULL, 10) : 0;

	if (owner_load(&owner, &err) != 0 || session_store_open(&owner, &ss, &err) != 0) {
		die(&err);
	}
	if (strcmp(what, "bench") == 0) {
		bench(ss, &owner, strtod(argv[2], NULL));
	} else if (strcmp(what, "start") == 0 && argc == 4) {
		start(ss, argv[2], argv[3]);
	} else if ((strcmp(what, "spend") == 0 || strcmp(what, "hold") == 0) && argc == 5) {
		spend(ss, argv[2], n, strtol(argv[4], NULL, 10), what[0] == 's');
	} else if (strcmp(what, "settle") == 0 && argc == 4) {
		if (session_settle(ss, strtol(argv[2], NULL, 10), n, &d, &err) != 0) {
			die(&err);
		}
	} else if (strcmp(what, "kill") == 0) {
		if (session_become(ss, argv[2], SESSION_KILLED, "told so", &d, &err) != 0) {
			die(&err);
		}
	} else if (strcmp(what, "show") == 0) {
		show(ss, argv[2]);
	} else if (strcmp(what, "ledger") == 0) {
		if (session_ledger(ss, argv[2], put_line, NULL, &err) != 0) {
			die(&err);
		}
	} else {
		fputs("usage: see the top of tests/bench/session.c\n", stderr);
		return 2;
	}
	session_store_close(ss);
	owner_done(&owner);
	return 0;
}
