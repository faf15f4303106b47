/* launch.c - measures the time from the start of a program to its end.
 *
 *   launch latency ROUNDS ::: NAME CMD ARG... ::: NAME CMD ARG...
 *   launch throughput SECONDS INFLIGHT ::: NAME CMD ARG... ::: ...
 *   launch memory ::: NAME CMD ARG...
 *
 * The variants take turns, and the order in a round rotates, so that other load on the machine
 * affects all of them equally. Programs are started with posix_spawn, which does not copy this
 * process. Prints one JSON object. If a variant fails, the measurement fails: otherwise a fast
 * failure would count as a fast start. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_VARIANTS 8
#define MAX_ROUNDS   100000
#define MAX_INFLIGHT 1024
#define SLICES       8
#define WARM_UP      3
#define SEPARATOR    ":::"

struct variant {
	const char *name;
	char **argv;
	double *samples; /* microseconds */
	long max_rss;    /* kB: the largest process of the run */
	double seconds;
	uint64_t done;
};

static struct variant variants[MAX_VARIANTS];
static size_t n_variants;
static posix_spawn_file_actions_t actions;

static _Noreturn void die(const char *what, const char *name)
{
	fprintf(stderr, "launch: %s: %s%s%s\n", name, what, errno != 0 ? ": " : "",
	        errno != 0 ? strerror(errno) : "");
	exit(1);
}

static double now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static pid_t start(const struct variant *v)
{
	pid_t pid;

	errno = posix_spawnp(&pid, v->argv[0], &actions, NULL, v->argv, environ);
	if (errno != 0) {
		die("cannot start", v->name);
	}
	return pid;
}

static void check_status(const struct variant *v, int status)
{
	char text[64];

	if (status == 0) {
		return;
	}
	errno = 0;
	snprintf(text, sizeof(text), WIFEXITED(status) ? "exit status %d" : "ended by signal %d",
	         WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
	die(text, v->name);
}

static double run_once(struct variant *v)
{
	struct rusage used;
	int status;
	double from = now();
	pid_t pid = start(v);

	if (wait4(pid, &status, 0, &used) != pid) {
		die("wait4", v->name);
	}
	double took = now() - from;
	check_status(v, status);
	if (used.ru_maxrss > v->max_rss) {
		v->max_rss = used.ru_maxrss;
	}
	return took;
}

/* ---- latency --------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void latency(size_t rounds)
{
	for (size_t i = 0; i < n_variants; i++) {
		variants[i].samples = calloc(rounds, sizeof(double));
		if (variants[i].samples == NULL) {
			die("memory", variants[i].name);
		}
		for (int k = 0; k < WARM_UP; k++) {
			(void)run_once(&variants[i]);
		}
	}
	for (size_t r = 0; r < rounds; r++) {
		for (size_t i = 0; i < n_variants; i++) {
			struct variant *v = &variants[(i + r) % n_variants];
			v->samples[r] = run_once(v);
		}
	}
	for (size_t i = 0; i < n_variants; i++) {
		struct variant *v = &variants[i];
		qsort(v->samples, rounds, sizeof(double), compare);
		printf("%s\"%s\": {\"p50_us\": %.1f, \"p90_us\": %.1f, \"min_us\": %.1f, "
		       "\"runs\": %zu, \"max_rss_kb\": %ld}",
		       i == 0 ? "{" : ", ", v->name, v->samples[rounds / 2],
		       v->samples[rounds * 9 / 10], v->samples[0], rounds, v->max_rss);
		free(v->samples);
	}
	puts("}");
}

/* ---- throughput ------------------------------------------------------------ */

static void slice(struct variant *v, double seconds, unsigned inflight)
{
	double from = now();
	double until = from + seconds * 1e6;
	unsigned running = 0;

	while (running > 0 || now() < until) {
		while (running < inflight && now() < until) {
			(void)start(v);
			running++;
		}
		int status;
		if (wait4(-1, &status, 0, NULL) < 0) {
			die("wait4", v->name);
		}
		check_status(v, status);
		running--;
		v->done++;
	}
	v->seconds += (now() - from) / 1e6;
}

static void throughput(double seconds, unsigned inflight)
{
	for (int s = 0; s < SLICES; s++) {
		for (size_t i = 0; i < n_variants; i++) {
			slice(&variants[(i + (size_t)s) % n_variants], seconds / SLICES, inflight);
		}
	}
	for (size_t i = 0; i < n_variants; i++) {
		struct variant *v = &variants[i];
		printf("%s\"%s\": {\"per_second\": %.1f, \"runs\": %llu, \"inflight\": %u}",
		       i == 0 ? "{" : ", ", v->name, (double)v->done / v->seconds,
		       (unsigned long long)v->done, inflight);
	}
	puts("}");
}

/* ---- memory ---------------------------------------------------------------- */

/* Returns the peak memory of a process in kB. VmHWM never falls, so its last value is the peak. The
 * value is read every 5 ms, so the program should run for some tenths of a second. */
static long watch_peak(pid_t pid)
{
	char path[64];
	char text[4096];
	long peak = 0;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	for (;;) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
		if (fd >= 0) {
			close(fd);
		}
		text[n > 0 ? n : 0] = '\0';
		const char *hwm = strstr(text, "\nVmHWM:");
		if (hwm == NULL) {
			return peak; /* a zombie has no memory */
		}
		peak = strtol(hwm + 7, NULL, 10);
		usleep(5000);
	}
}

static void memory(void)
{
	for (size_t i = 0; i < n_variants; i++) {
		struct variant *v = &variants[i];
		int status;
		pid_t pid = start(v);
		long peak = watch_peak(pid);
		if (waitpid(pid, &status, 0) != pid) {
			die("waitpid", v->name);
		}
		check_status(v, status);
		printf("%s\"%s\": {\"peak_kb\": %ld}", i == 0 ? "{" : ", ", v->name, peak);
	}
	puts("}");
}

/* ---- arguments ------------------------------------------------------------- */

/* Splits argv at the separators: each part is one variant. */
static int parse_variants(char **argv)
{
	while (*argv != NULL) {
		*argv++ = NULL; /* replaces the separator, to end the arguments before it */
		if (n_variants == MAX_VARIANTS || argv[0] == NULL || argv[1] == NULL) {
			return -1;
		}
		variants[n_variants].name = argv[0];
		variants[n_variants++].argv = argv + 1;
		while (*argv != NULL && strcmp(*argv, SEPARATOR) != 0) {
			argv++;
		}
	}
	return n_variants > 0 ? 0 : -1;
}

static int usage(void)
{
	fputs("usage: launch latency ROUNDS | throughput SECONDS INFLIGHT | memory"
	      " ::: NAME CMD ARG... [::: ...]\n",
	      stderr);
	return 2;
}

int main(int argc, char **argv)
{
	int words = 1;

	while (words < argc && strcmp(argv[words], SEPARATOR) != 0) {
		words++;
	}
	if (words == argc || parse_variants(argv + words) < 0) {
		return usage();
	}
	if (posix_spawn_file_actions_init(&actions) != 0 ||
	    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0) != 0 ||
	    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0) != 0) {
		die("file actions", "posix_spawn");
	}
	if (words == 3 && strcmp(argv[1], "latency") == 0) {
		unsigned long rounds = strtoul(argv[2], NULL, 10);
		if (rounds < 1 || rounds > MAX_ROUNDS) {
			return usage();
		}
		latency(rounds);
	} else if (words == 4 && strcmp(argv[1], "throughput") == 0) {
		unsigned long inflight = strtoul(argv[3], NULL, 10);
		if (inflight < 1 || inflight > MAX_INFLIGHT) {
			return usage();
		}
		throughput(strtod(argv[2], NULL), (unsigned)inflight);
	} else if (words == 2 && strcmp(argv[1], "memory") == 0) {
		memory();
	} else {
		return usage();
	}
	return 0;
}
