/* cmd_watch.c - follows runs that other processes started.
 *
 * `watch` looks for new lines in the records ten times a second. inotify reports new runs. A
 * run is over when its signature is in the record, or when no process has the record locked
 * any more. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/limits.h"
#include "base/own.h"
#include "cli/line.h"
#include "cli/cli_record.h"
#include "cli/say.h"

#define TICK_MS    100
#define IDLE_TICKS 10 /* a run without a supervisor is over after this many ticks without news */

struct followed {
	int fd;
	struct reader in;
	char id[RUN_ID_SIZE];
	unsigned idle;
	bool ended; /* the signature at the end of the record was read */
};

struct watch {
	struct runs runs;
	struct followed v[MAX_FOLLOWED];
	size_t n;
	bool many;
	bool as_json;
	bool routine;
	struct line line;
	struct buf out;
};

static void watch_free(struct watch **w)
{
	if (*w == NULL) {
		return;
	}
	for (size_t i = 0; i < (*w)->n; i++) {
		reader_done(&(*w)->v[i].in);
		own_close(&(*w)->v[i].fd);
	}
	runs_done(&(*w)->runs);
	line_done(&(*w)->line);
	buf_done(&(*w)->out);
	free(*w);
}

static struct watch *watch_new(const struct request *r, bool many)
{
	struct watch *w = calloc(1, sizeof(*w));

	if (w != NULL) {
		w->runs = (struct runs)RUNS_NONE;
		w->many = many;
		w->as_json = request_has(r, FLAG_JSON);
		w->routine = request_has(r, FLAG_VERBOSE);
		buf_init(&w->out, SAY_MAX);
	}
	return w;
}

/* Takes `fd`. */
static void watch_add(struct watch *w, int fd, const char *id, uint64_t from)
{
	for (size_t i = 0; i < w->n; i++) {
		if (id[0] != '\0' && strcmp(w->v[i].id, id) == 0) {
			own_close(&fd);
			return;
		}
	}
	if (w->n == MAX_FOLLOWED) {
		say_warningf("run %s is not watched: at most %d runs are watched at once", id,
		             MAX_FOLLOWED);
		own_close(&fd);
		return;
	}
	struct followed *f = &w->v[w->n++];
	*f = (struct followed){ .fd = fd };
	snprintf(f->id, sizeof(f->id), "%s", id);
	reader_init(&f->in, fd, from);
}

static void watch_remove(struct watch *w, size_t i)
{
	reader_done(&w->v[i].in);
	own_close(&w->v[i].fd);
	w->v[i] = w->v[--w->n];
}

static void put_json(struct watch *w, const struct followed *f, const char *text, size_t len)
{
	if (!w->many) {
		line_render_raw(&w->out, text, len, STDOUT_FILENO);
		return;
	}
	struct json j = JSON_TO(&w->out, false);
	json_open(&j, '{');
	json_kstr(&j, "run_id", f->id);
	json_key(&j, "record");
	json_raw(&j, "", 0);
	line_render_raw(&w->out, text, len - 1, STDOUT_FILENO);
	json_close(&j, '}');
	buf_addc(&w->out, '\n');
}

/* Prints the new lines of one run. Returns 0, or the exit status that ends watching this run. */
static int watch_read(struct watch *w, struct followed *f)
{
	char who[9];
	const char *text = NULL;
	const char *why = NULL;
	size_t len = 0;
	enum reader_line got;

	snprintf(who, sizeof(who), "%.8s", f->id);
	struct render_style style = { STDOUT_FILENO, true, w->routine, w->many ? who : "" };
	while (!f->ended && (got = reader_next(&f->in, &text, &len)) == READER_LINE) {
		if (line_parse(&w->line, text, len, &why) != 0) {
			return say_fail(EXIT_FINDINGS, "the record of run %s is damaged (%s)",
			                f->id, why);
		}
		f->idle = 0;
		f->ended = w->line.kind == EV_SIGNATURE;
		buf_reset(&w->out);
		if (w->as_json) {
			put_json(w, f, text, len);
		} else {
			line_render(&w->out, &w->line, &style);
		}
		int status = say_out(STDOUT_FILENO, &w->out);
		if (status != EXIT_FINE) {
			return status;
		}
		got = READER_END;
	}
	if (!f->ended && (got == READER_FAIL || got == READER_LONG)) {
		return say_fail(EXIT_FINDINGS, "the record of run %s cannot be read further",
		                f->id);
	}
	return EXIT_FINE;
}

/* Reads every run once, and drops the runs that are over. */
static int watch_tick(struct watch *w)
{
	int result = EXIT_FINE;

	for (size_t i = 0; i < w->n;) {
		struct followed *f = &w->v[i];
		int status = watch_read(w, f);
		bool gone = !f->ended && status == EXIT_FINE && !run_file_live(f->fd) &&
		            ++f->idle >= IDLE_TICKS;
		if (gone) {
			say_warningf("the record of run %s has no end: the supervisor of the run "
			             "has died",
			             f->id);
			status = EXIT_INCOMPLETE;
		}
		if (status == EXIT_SANDBOX) {
			return status; /* the output cannot be written any more */
		}
		result = status != EXIT_FINE ? status : result;
		if (f->ended || status != EXIT_FINE) {
			watch_remove(w, i);
		} else {
			i++;
		}
	}
	return result;
}

static void watch_arrival(void *arg, const struct inotify_event *e)
{
	struct watch *w = arg;
	struct run_entry run;

	if ((e->mask & IN_Q_OVERFLOW) != 0) {
		say_warningf(
		        "more runs have begun than the kernel could report: some are not shown");
		return;
	}
	/* A run is added when its first name appears (has_flat). Later it gets a directory with
	 * another name, which is not a new run. */
	if (e->len == 0 || !run_entry_from_name(&run, e->name) || !run.has_flat) {
		return;
	}
	int fd = runs_record(&w->runs, &run);
	if (fd >= 0) {
		watch_add(w, fd, run.id, 0);
	}
}

/* Watches until it is interrupted. For a run that is running already, prints only lines that are
 * new from now on. */
static int watch_all(struct watch *w, const char *state_dir)
{
	auto_fd dir = runs_directory(state_dir);
	auto_fd notify = dir < 0 ? -1 : runs_news(dir, IN_CREATE | IN_MOVED_TO);
	struct ssb_error err = { 0 };

	if (notify < 0) {
		return say_fail(EXIT_SANDBOX, "cannot watch for new runs: %s",
		                strerrordesc_np(errno));
	}
	/* The list is read after the inotify watch began, so that no run is missed. A run that
	 * starts in between is in both: it counts as new, and is shown from its beginning. */
	if (runs_open(&w->runs, state_dir, &err) != 0) {
		return exit_status_told(&err);
	}
	/* Takes all waiting events now. If an event were taken later, when its run has already
	 * been read to the end, the run would be added a second time. */
	runs_news_take(notify, watch_arrival, w);
	for (size_t i = 0; i < w->runs.n; i++) {
		int fd = runs_record(&w->runs, &w->runs.v[i]);
		struct stat st;
		if (fd >= 0 && run_file_live(fd) && fstat(fd, &st) == 0) {
			watch_add(w, fd, w->runs.v[i].id, (uint64_t)st.st_size);
		} else {
			own_close(&fd);
		}
	}
	for (;;) {
		struct pollfd p = { .fd = notify, .events = POLLIN };
		if (poll(&p, 1, TICK_MS) > 0) {
			runs_news_take(notify, watch_arrival, w);
		}
		if (watch_tick(w) == EXIT_SANDBOX) {
			return EXIT_SANDBOX;
		}
	}
}

static int watch_one(struct watch *w)
{
	int status = EXIT_FINE;

	while (status == EXIT_FINE) {
		status = watch_tick(w);
		if (w->n == 0) {
			return status;
		}
		(void)poll(NULL, 0, TICK_MS);
	}
	return status;
}

/* Returns the fd of the record if exactly one run is running; else prints a message and returns -1.
 */
static int find_only_live(const struct runs *runs, char id[RUN_ID_SIZE])
{
	auto_fd found = -1;

	for (size_t i = 0; i < runs->n; i++) {
		auto_fd fd = runs_record(runs, &runs->v[i]);
		if (fd < 0 || !run_file_live(fd)) {
			continue;
		}
		if (found >= 0) {
			say_errorf("more than one run is running: name one (see 'skillsandbox "
			           "ps'), or "
			           "--all");
			return -1;
		}
		found = steal_fd(&fd);
		memcpy(id, runs->v[i].id, RUN_ID_SIZE);
	}
	if (found < 0) {
		say_errorf(
		        "nothing is running; name a run that has ended, or wait for new ones with "
		        "--all");
	}
	return steal_fd(&found);
}

static int watch_named(const struct request *r, struct watch *w)
{
	AUTO(cli_record_done) struct record_request q = RECORD_REQUEST_NONE;
	int status = cli_record_open(r, NULL, &q);

	if (status != EXIT_FINE) {
		return status;
	}
	watch_add(w, steal_fd(&q.file.fd), q.file.id, 0);
	return watch_one(w);
}

int cmd_watch(struct request *r)
{
	bool all = request_has(r, FLAG_ALL);
	AUTO(watch_free) struct watch *w = watch_new(r, all);
	AUTO(owner_done) struct owner owner = { 0 };
	struct ssb_error err = { 0 };
	char id[RUN_ID_SIZE];

	if (w == NULL || (all && r->operands.n > 0)) {
		say_errorf(w == NULL ? "out of memory" : "watch takes a RUN or --all, not both");
		return w == NULL ? EXIT_SANDBOX : EXIT_USAGE;
	}
	if (r->operands.n > 0) {
		return watch_named(r, w);
	}
	if (owner_load(&owner, &err) != 0) {
		return exit_status_told(&err);
	}
	if (all) {
		return watch_all(w, owner.state_dir);
	}
	if (runs_open(&w->runs, owner.state_dir, &err) != 0) {
		return exit_status_told(&err);
	}
	int fd = find_only_live(&w->runs, id);
	if (fd < 0) {
		return EXIT_SANDBOX;
	}
	watch_add(w, fd, id, 0);
	return watch_one(w);
}
