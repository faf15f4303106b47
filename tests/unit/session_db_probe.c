/* session_db_probe.c - uses a store of sessions, for the end to end tests.
 *
 *   probe STORE open                opens the store
 *   probe STORE write N TAG         commits N transactions of three rows (0: without end); prints
 *                                   "ready" and, if N is 0, the number of each commit
 *   probe STORE count TAG           prints four counts, which are equal if no transaction is
 *                                   partly stored
 *   probe STORE check               runs SQLite's own check of the file
 *   probe STORE tell ID             tells other processes that a session has changed
 *   probe STORE listen SECONDS      prints "ready", each message of other processes, "lost" and
 *                                   "back"
 *   probe STORE stay                executes one command for each line of standard input: begin,
 *                                   commit, run, lock, else a transaction; prints "ok" or the error
 *   probe STORE bench SECONDS FILE  compares transactions with syncs of 16 KiB in FILE
 *
 * STORE is a file or a URL. After an error the exit status is 1, and the error is on stderr. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "os/clock.h"
#include "session/db.h"
#include "session/schema.h"

static struct db *open_store(const char *store, struct ssb_error *err)
{
	struct db *db = NULL;
	int rc = store[0] == '/' ? db_open_sqlite(store, &db, err)
	                         : db_open_postgres(store, &db, err);

	return rc == 0 ? db : NULL;
}

static int say(const struct ssb_error *err)
{
	fprintf(stderr, "%s: %s (%d)\n", err->where, err->text, (int)err->code);
	return 1;
}

static int take_numbers(void *arg, const struct db_value *v, size_t n)
{
	int64_t *out = arg;

	for (size_t i = 0; i < n; i++) {
		out[i] = v[i].type == DB_INT ? v[i].i : -1;
	}
	return 0;
}

static int make_session(struct db *db, const char *tag, int64_t *ret, struct ssb_error *err)
{
	if (db_begin(db, err) != 0) {
		return -1;
	}
	int rc = db_run(db,
	                "INSERT INTO sessions (id, parent, root, depth, agent, policy, state,"
	                " alerted, reason, created, ended, spent, reserved, actions, violations,"
	                " runs, cpu_ms, wall_ms, bytes_out, bytes_in, connections, domains, seq,"
	                " hash) VALUES ($1, 0, 0, 0, 'a', $2, 0, 0, '', 1, 0, 0, 0, 0, 0, 0, 0, 0,"
	                " 0, 0, 0, 0, 0, '') ON CONFLICT (id) DO NOTHING",
	                DB_ARGS(DB_T(tag), DB_T("budget:\n  max_cost_per_session: 5.00\n")), NULL,
	                NULL, err);
	rc = rc != 0 ? rc
	             : db_run(db, "SELECT n FROM sessions WHERE id = $1", DB_ARGS(DB_T(tag)),
	                      take_numbers, ret, err);
	if (rc != 0) {
		db_rollback(db);
		return -1;
	}
	return db_commit(db, err);
}

/* Writes the rows that a check of a budget writes. */
static int one_transaction(struct db *db, int64_t session, struct ssb_error *err)
{
	static char line[601];
	int64_t seq = 0;

	memset(line, 'x', sizeof(line) - 1);
	if (db_begin(db, err) != 0) {
		return -1;
	}
	int rc = db_lock_tree(db, session, err);
	rc = rc != 0 ? rc
	             : db_run(db,
	                      "UPDATE sessions SET spent = spent + 100, actions = actions + 1,"
	                      " seq = seq + 1 WHERE n = $1 RETURNING seq",
	                      DB_ARGS(DB_I(session)), take_numbers, &seq, err);
	rc = rc != 0 ? rc
	             : db_run(db,
	                      "INSERT INTO reservations (session, root, action, amount, made,"
	                      " expires, state) VALUES ($1, $1, 'llm', 100, $2, 0, 1)",
	                      DB_ARGS(DB_I(session), DB_I(seq)), NULL, NULL, err);
	rc = rc != 0 ? rc
	             : db_run(db, "INSERT INTO ledger (n, line) VALUES ($1, $2)",
	                      DB_ARGS(DB_I(SESSION_LINE(session, seq)), DB_T(line)), NULL, NULL,
	                      err);
	if (rc != 0) {
		db_rollback(db);
		return -1;
	}
	return db_commit(db, err);
}

static int run_open(struct db *db, char **args)
{
	(void)db;
	(void)args;
	return 0;
}

static int run_write(struct db *db, char **args)
{
	struct ssb_error err = { 0 };
	long n = strtol(args[0], NULL, 10);
	uint64_t worst = 0;
	int64_t session = 0;

	if (make_session(db, args[1], &session, &err) != 0) {
		return say(&err);
	}
	(void)!write(STDOUT_FILENO, "ready\n", 6);
	for (long i = 1; n == 0 || i <= n; i++) {
		uint64_t start = clock_us();
		if (one_transaction(db, session, &err) != 0) {
			return say(&err);
		}
		uint64_t took = clock_us() - start;
		worst = took > worst ? took : worst;
		if (n == 0) {
			char text[32];
			int len = snprintf(text, sizeof(text), "%ld\n", i);
			(void)!write(STDOUT_FILENO, text, (size_t)len);
		}
	}
	printf("worst %llu us\n", (unsigned long long)worst);
	return 0;
}

static int run_count(struct db *db, char **args)
{
	struct ssb_error err = { 0 };
	int64_t v[4] = { 0 };

	if (db_run(db,
	           "SELECT s.seq, s.spent / 100, (SELECT count(*) FROM reservations WHERE session ="
	           " s.n), (SELECT count(*) FROM ledger WHERE n >> 32 = s.n) FROM sessions s"
	           " WHERE s.id = $1",
	           DB_ARGS(DB_T(args[0])), take_numbers, v, &err) != 0) {
		return say(&err);
	}
	printf("%lld %lld %lld %lld\n", (long long)v[0], (long long)v[1], (long long)v[2],
	       (long long)v[3]);
	return 0;
}

static int show_text(void *arg, const struct db_value *v, size_t n)
{
	(void)arg;
	printf("%s\n", n == 1 && v[0].type == DB_TEXT ? v[0].s : "?");
	return 0;
}

static int run_check(struct db *db, char **args)
{
	struct ssb_error err = { 0 };

	(void)args;
	return db_run(db, "PRAGMA integrity_check", NULL, 0, show_text, NULL, &err) != 0 ? say(&err)
	                                                                                 : 0;
}

static int run_tell(struct db *db, char **args)
{
	struct ssb_error err = { 0 };

	return db_begin(db, &err) != 0 || db_tell(db, args[0], &err) != 0 ||
	                       db_commit(db, &err) != 0
	               ? say(&err)
	               : 0;
}

static int run_listen(struct db *db, char **args)
{
	uint64_t until = clock_ms() + strtoul(args[0], NULL, 10) * 1000;
	struct pollfd p = { .fd = db_news_fd(db), .events = POLLIN };

	printf("ready %d\n", p.fd >= 0);
	fflush(stdout);
	while (p.fd >= 0 && clock_ms() < until) {
		struct ssb_error err = { 0 };
		char id[SESSION_ID];
		int rc = poll(&p, 1, (int)(until - clock_ms())) > 0 ? db_news(db, id, &err) : 0;
		if (rc > 0) {
			printf("news '%s'\n", id);
		} else if (rc < 0) {
			printf("lost: %s\n", err.text);
			fflush(stdout);
			/* Waits until the store is back. db_begin() then listens again. */
			while (clock_ms() < until && db_begin(db, NULL) != 0) {
				usleep(50000);
			}
			db_rollback(db);
			printf("back\n");
		}
		fflush(stdout);
	}
	return 0;
}

static int run_stay(struct db *db, char **args)
{
	struct ssb_error err = { 0 };
	char line[64];
	int64_t session = 0;

	(void)args;
	if (make_session(db, "stay", &session, &err) != 0) {
		return say(&err);
	}
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin) != NULL) {
		int rc = 0;
		err = (struct ssb_error){ 0 };
		if (strcmp(line, "begin\n") == 0) {
			rc = db_begin(db, &err);
		} else if (strcmp(line, "commit\n") == 0) {
			rc = db_commit(db, &err);
		} else if (strcmp(line, "run\n") == 0) {
			rc = db_run(db, "UPDATE sessions SET runs = runs + 1 WHERE n = $1",
			            DB_ARGS(DB_I(session)), NULL, NULL, &err);
		} else if (strcmp(line, "lock\n") == 0) {
			rc = db_lock_tree(db, session, &err);
		} else {
			rc = one_transaction(db, session, &err);
		}
		printf("%s %d\n", rc == 0 ? "ok" : err.text, err.sys_errno);
		fflush(stdout);
	}
	return 0;
}

static uint64_t cpu_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* Measures both in turns, so that other load on the machine affects both equally. */
static int run_bench(struct db *db, char **args)
{
	static char block[16384];
	struct ssb_error err = { 0 };
	uint64_t us[2] = { 0 };
	uint64_t cpu[2] = { 0 };
	uint64_t n[2] = { 0 };
	uint64_t until = clock_us() + strtoul(args[0], NULL, 10) * 1000000;
	int64_t session = 0;
	auto_fd fd = open(args[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || make_session(db, "bench", &session, &err) != 0) {
		return say(&err);
	}
	while (clock_us() < until) {
		for (int what = 0; what < 2; what++) {
			uint64_t start = clock_us();
			uint64_t start_cpu = cpu_us();
			for (int i = 0; i < 20; i++) {
				int rc = what == 0 ? write(fd, block, sizeof(block)) < 0 ||
				                             fdatasync(fd) < 0
				                   : one_transaction(db, session, &err);
				if (rc != 0) {
					return say(&err);
				}
			}
			us[what] += clock_us() - start;
			cpu[what] += cpu_us() - start_cpu;
			n[what] += 20;
		}
	}
	double rate[2] = { (double)n[0] * 1e6 / (double)us[0], (double)n[1] * 1e6 / (double)us[1] };
	printf("syncs %.0f/s (cpu %.0f us) transactions %.0f/s (cpu %.0f us) ratio %.2f, pairs "
	       "%.2f\n",
	       rate[0], (double)cpu[0] / (double)n[0], rate[1], (double)cpu[1] / (double)n[1],
	       rate[1] / rate[0], rate[1] / rate[0] / 2);
	return 0;
}

static const struct {
	const char *name;
	int n_args;
	int (*run)(struct db *db, char **args);
} COMMANDS[] = {
	{ "open", 0, run_open },   { "write", 2, run_write }, { "count", 1, run_count },
	{ "check", 0, run_check }, { "tell", 1, run_tell },   { "listen", 1, run_listen },
	{ "stay", 0, run_stay },   { "bench", 2, run_bench },
};

int main(int argc, char **argv)
{
	struct ssb_error err = { 0 };

	for (size_t i = 0; argc > 2 && i < ARRAY_LEN(COMMANDS); i++) {
		if (strcmp(argv[2], COMMANDS[i].name) == 0 && argc - 3 == COMMANDS[i].n_args) {
			struct db *db = open_store(argv[1], &err);
			int rc = db != NULL ? COMMANDS[i].run(db, argv + 3) : say(&err);
			db_close(db);
			return rc;
		}
	}
	fprintf(stderr, "usage: see the top of session_db_probe.c\n");
	return 2;
}
