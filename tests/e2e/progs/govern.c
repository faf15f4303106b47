/* govern - runs a plan with a governor. The governor is a child process that takes commands from
 * standard input and prints the supervisor's events to standard output, one line of JSON each.
 * The program is linked with the static library and uses its internal headers.
 *
 *     govern [--best-effort LAYER] [--read P] [--write P] [--net N]
 *            [--allow-private R] [--timeout T] ... -- PROGRAM ARGUMENT...
 *     govern ... DIRECTORY
 *
 * Commands: "pause", "resume", "kill GRACE_MS REASON", "garbage", "short", "close" (the governor
 * exits), "die" (the governor kills itself with SIGKILL). The skill's input is empty; its output
 * and errors go to the file that GOVERN_STDOUT names. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/name.h"
#include "policy/plan.h"
#include "sandbox/govern.h"
#include "sandbox/sandbox.h"

static long now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void put_list(const char *key, const uint64_t *n, int count, const char *(*name)(int))
{
	const char *sep = "";

	printf(", \"%s\": {", key);
	for (int i = 0; i < count; i++) {
		if (n[i] > 0) {
			printf("%s\"%s\": %llu", sep, name(i), (unsigned long long)n[i]);
			sep = ", ";
		}
	}
	printf("}");
}

static const char *kind_name(int i)
{
	return event_kind_name((enum event_kind)i);
}

static const char *class_name(int i)
{
	return CLASSES[i].name;
}

static void tell(const struct govern_msg *m)
{
	static const char *const NAMES[] = { "placed", "used", "connection", "violations",
		                             "stands", "goes", "ended" };

	printf("{\"at\": %ld, \"word\": \"%s\"", now_ms(), m->kind < 7 ? NAMES[m->kind] : "?");
	switch (m->kind) {
	case GOVERN_PLACED:
		printf(", \"run_id\": \"%s\", \"init\": %d, \"init_start\": %llu", m->placed.run_id,
		       m->placed.init, (unsigned long long)m->placed.init_start);
		break;
	case GOVERN_USED:
		printf(", \"cpu_ms\": %llu, \"wall_ms\": %llu, \"out\": %llu, \"in\": %llu",
		       (unsigned long long)m->used.cpu_ms, (unsigned long long)m->used.wall_ms,
		       (unsigned long long)m->used.bytes_out, (unsigned long long)m->used.bytes_in);
		break;
	case GOVERN_CONNECTION:
		printf(", \"name\": \"%s\"", m->connection.name);
		break;
	case GOVERN_VIOLATIONS:
		printf(", \"total\": %llu", (unsigned long long)m->violations.total);
		put_list("kinds", m->violations.kinds, EV_COUNT, kind_name);
		put_list("classes", m->violations.classes, CLASS_COUNT, class_name);
		break;
	case GOVERN_ENDED:
		printf(", \"exit_status\": %d, \"end\": \"%s\"", m->ended.exit_status,
		       m->ended.end < 0 ? "failed" : name_of_end((enum ssb_end)m->ended.end));
		put_list("derived", m->ended.derived, CLASS_COUNT, class_name);
		break;
	default:
		break;
	}
	printf("}\n");
	(void)fflush(stdout);
}

static void obey(int fd, char *word)
{
	struct govern_msg m = { 0 };
	char *grace = word + 5;

	word[strcspn(word, "\n")] = '\0';
	if (strcmp(word, "pause") == 0) {
		m.kind = GOVERN_PAUSE;
	} else if (strcmp(word, "resume") == 0) {
		m.kind = GOVERN_RESUME;
	} else if (strncmp(word, "kill ", 5) == 0) {
		m.kind = GOVERN_KILL;
		m.kill.grace_ms = strtoull(grace, &grace, 10);
		snprintf(m.kill.reason, sizeof(m.kill.reason), "%s", *grace ? grace + 1 : "");
	} else if (strcmp(word, "garbage") == 0) {
		m.kind = 4711;
	} else if (strcmp(word, "die") == 0) {
		(void)raise(SIGKILL);
	} else if (strcmp(word, "close") == 0) {
		_exit(0);
	}
	(void)!send(fd, &m, strcmp(word, "short") == 0 ? 3 : sizeof(m), MSG_NOSIGNAL);
}

/* Prints events and executes commands until the run has ended; commands after that are not read. */
static void govern(int fd)
{
	struct pollfd p[2] = { { .fd = fd, .events = POLLIN }, { .fd = 0, .events = POLLIN } };
	char line[512];

	while (poll(p, 2, -1) > 0) {
		struct govern_msg m;
		if (p[0].revents != 0) {
			if (recv(fd, &m, sizeof(m), 0) != (ssize_t)sizeof(m)) {
				_exit(0);
			}
			tell(&m);
		}
		if (p[1].revents != 0) {
			size_t n = 0;
			while (n < sizeof(line) - 1 && read(0, line + n, 1) == 1 &&
			       line[n++] != '\n') {
			}
			line[n] = '\0';
			if (n == 0) {
				p[1].fd = -1;
			} else {
				obey(fd, line);
			}
		}
	}
	_exit(0);
}

static const struct {
	const char *flag;
	enum ssb_option option;
} FLAGS[] = {
	{ "--best-effort", SSB_OPT_BEST_EFFORT },
	{ "--read", SSB_OPT_READ },
	{ "--write", SSB_OPT_WRITE },
	{ "--net", SSB_OPT_NET },
	{ "--allow-private", SSB_OPT_ALLOW_PRIVATE },
	{ "--timeout", SSB_OPT_TIMEOUT },
	{ "--memory", SSB_OPT_MEMORY },
	{ "--max-processes", SSB_OPT_MAX_PROCESSES },
	{ "--audit", SSB_OPT_AUDIT },
	{ "--profile", SSB_OPT_PROFILE },
};

static int fail(const struct ssb_error *err)
{
	printf("{\"word\": \"failed\", \"text\": \"%s: %s\"}\n", err->where, err->text);
	return 3;
}

static struct ssb_plan *make_plan(int argc, char **argv, struct ssb_error *err)
{
	struct ssb_options *o = ssb_options_new();
	struct ssb_plan *plan = NULL;
	int i = 1;

	for (; i + 1 < argc && strcmp(argv[i], "--") != 0; i += 2) {
		size_t f = 0;
		while (f < sizeof(FLAGS) / sizeof(FLAGS[0]) &&
		       strcmp(FLAGS[f].flag, argv[i]) != 0) {
			f++;
		}
		if (f == sizeof(FLAGS) / sizeof(FLAGS[0]) ||
		    ssb_options_set(o, FLAGS[f].option, argv[i + 1], err) != 0) {
			break;
		}
	}
	if (err->code == SSB_OK && i < argc && strcmp(argv[i], "--") == 0) {
		(void)ssb_plan_command(o, argv + i + 1, &plan, NULL, err);
	} else if (err->code == SSB_OK && i < argc) {
		(void)ssb_plan_skill(o, argv[i], NULL, &plan, NULL, err);
	}
	ssb_options_free(o);
	return plan;
}

int main(int argc, char **argv)
{
	struct ssb_error err = { 0 };
	struct ssb_result r = { 0 };
	struct ssb_plan *plan = make_plan(argc, argv, &err);
	int pair[2];

	if (plan == NULL) {
		return fail(&err);
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
		return 4;
	}
	pid_t governor = fork();
	if (governor == 0) {
		(void)close(pair[0]);
		govern(pair[1]);
	}
	(void)close(pair[1]);
	int to = open(getenv("GOVERN_STDOUT"), O_WRONLY | O_APPEND | O_CLOEXEC);
	int stdio[3] = { -1, to, to };
	struct run_request q = run_request_of(plan, stdio);
	q.govern_fd = pair[0];
	int failed = sandbox_run(&q, &r, NULL, &err);
	(void)close(pair[0]);
	(void)waitpid(governor, NULL, 0);
	if (failed != 0) {
		return fail(&err);
	}
	printf("{\"at\": %ld, \"word\": \"result\", \"end\": \"%s\", \"exit_status\": %d, "
	       "\"signal\": %d, \"reason\": \"%s\", \"trace\": \"%s\", \"violations\": %zu, "
	       "\"lost\": \"%s\"}\n",
	       now_ms(), name_of_end(r.end), r.exit_status, r.signal, r.session_reason,
	       r.trace_path, r.violations, r.lost_layers);
	ssb_plan_free(plan);
	return 0;
}
