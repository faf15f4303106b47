/* records_live.c - news of runs: a run began, or a record grew that a client has subscribed to.
 *
 * The kernel reports new names in the directory of the runs (inotify). A timer checks the known
 * runs: every 200 ms if a client has subscribed to one of them; otherwise every second, and only
 * whether they are still running. While nothing is running, the timer is off. A run that began
 * before the server becomes known when a client reads its record. */
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "serve/records_priv.h"
#include "serve/uri.h"

#define LOOK_MS    200  /* time between checks if a client has subscribed to a known run */
#define IDLE_MS    1000 /* time between checks whether known runs are still running */
#define CHANGED_MS 500  /* new runs within this time are reported as one change of the list */

struct followed_run {
	char id[RUN_ID_SIZE];
	uint64_t size; /* size of the record that was reported last */
};

struct records_live {
	struct serve *serve;
	struct runs dir; /* only dir.fd is used */
	int fd;          /* inotify */
	struct loop_watch *watch;
	struct loop_timer *look;
	struct loop_timer *changed;
	struct followed_run v[MAX_FOLLOWED];
	size_t n;
};

static void on_look(void *arg);

/* ---- runs that are running --------------------------------------------------------------- */

static const char *const FORMS[] = { URI_RUNS "%s", URI_RUNS "%s/trace", URI_RUNS "%s/output" };
#define URI_SIZE (sizeof(URI_RUNS) + RUN_ID_SIZE + sizeof("/output"))

static bool is_wanted(const struct records_live *l, const char *id)
{
	char uri[URI_SIZE];

	for (size_t i = 0; i < ARRAY_LEN(FORMS); i++) {
		snprintf(uri, sizeof(uri), FORMS[i], id);
		if (mcp_resource_wanted(l->serve->mcp, uri)) {
			return true;
		}
	}
	return false;
}

static void report_change(const struct records_live *l, const char *id)
{
	char uri[URI_SIZE];

	for (size_t i = 0; i < ARRAY_LEN(FORMS); i++) {
		snprintf(uri, sizeof(uri), FORMS[i], id);
		if (mcp_resource_wanted(l->serve->mcp, uri)) {
			mcp_resource_updated(l->serve->mcp, uri);
		}
	}
}

/* Reports the growth or the end of a run to clients. Returns false if the run has ended. */
static bool check_run(struct records_live *l, struct followed_run *f, bool wanted)
{
	struct run_entry e = { .has_dir = true, .has_flat = true };
	struct stat st;
	char id[RUN_ID_SIZE];

	memcpy(e.id, f->id, sizeof(e.id));
	memcpy(id, f->id, sizeof(id));
	auto_fd fd = runs_record(&l->dir, &e);
	if (fd < 0 || fstat(fd, &st) != 0) {
		return false;
	}
	/* Checked before the size is used. If the run writes more meanwhile and ends, the next
	 * check reports it. */
	bool running = run_file_live(fd);
	wanted = wanted && records_visible(l->serve, fd, id);
	if (wanted && (uint64_t)st.st_size != f->size) {
		f->size = (uint64_t)st.st_size;
		report_change(l, id);
	} else if (wanted && !running) {
		report_change(l, id);
	}
	return running;
}

static void look_again(struct records_live *l, bool wanted)
{
	if (l->look == NULL && l->n > 0) {
		(void)loop_after(l->serve->loop, wanted ? LOOK_MS : IDLE_MS, on_look, l, &l->look);
	}
}

static void on_look(void *arg)
{
	struct records_live *l = arg;
	bool any = false;

	l->look = NULL;
	for (size_t i = l->n; i > 0; i--) {
		struct followed_run *f = &l->v[i - 1];
		bool wanted = is_wanted(l, f->id);
		any = any || wanted;
		if (!check_run(l, f, wanted)) {
			*f = l->v[--l->n];
		}
	}
	look_again(l, any);
}

static bool is_known(const struct records_live *l, const char *id)
{
	return ARRAY_HAS(e, l->v, l->n, strcmp(e->id, id) == 0);
}

void records_live_follow(struct records_live *l, const char *id)
{
	if (!is_known(l, id) && l->n < ARRAY_LEN(l->v)) {
		l->v[l->n] = (struct followed_run){ 0 };
		snprintf(l->v[l->n++].id, RUN_ID_SIZE, "%s", id);
		look_again(l, false);
	}
}

/* ---- new runs ---------------------------------------------------------------------------- */

static void on_changed(void *arg)
{
	struct records_live *l = arg;

	l->changed = NULL;
	mcp_list_changed(l->serve->mcp, MCP_RESOURCES);
}

static void take_event(void *arg, const struct inotify_event *e)
{
	struct records_live *l = arg;
	struct run_entry entry;

	if (e->len == 0 || !run_entry_from_name(&entry, e->name)) {
		return;
	}
	/* A record is later moved into a directory of the run. That new directory is not a new
	 * run. */
	if ((e->mask & IN_CREATE) != 0 && is_known(l, entry.id)) {
		return;
	}
	if ((e->mask & IN_CREATE) != 0) {
		records_live_follow(l, entry.id);
	}
	if (l->changed == NULL) {
		(void)loop_after(l->serve->loop, CHANGED_MS, on_changed, l, &l->changed);
	}
}

static void on_event(void *arg, uint32_t events)
{
	struct records_live *l = arg;

	(void)events;
	runs_news_take(l->fd, take_event, l);
}

/* Starts to watch the directory. If this fails, clients get no news about new runs; everything else
 * works. */
static void watch_directory(struct records_live *l)
{
	l->dir.fd = runs_directory(l->serve->owner.state_dir);
	l->fd = l->dir.fd < 0 ? -1 : runs_news(l->dir.fd, IN_CREATE | IN_DELETE);
	if (l->fd < 0 || loop_watch(l->serve->loop, l->fd, EPOLLIN, on_event, l, &l->watch) != 0) {
		own_close(&l->fd);
	}
}

int records_live_new(struct serve *s, struct records_live **ret, struct ssb_error *err)
{
	struct records_live *l = calloc(1, sizeof(*l));

	if (l == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "records", "out of memory");
	}
	l->serve = s;
	l->dir.fd = -1;
	l->fd = -1;
	watch_directory(l);
	*ret = l;
	return 0;
}

void records_live_free(struct records_live *l)
{
	if (l == NULL) {
		return;
	}
	loop_untimer(&l->look);
	loop_untimer(&l->changed);
	loop_unwatch(&l->watch);
	own_close(&l->fd);
	own_close(&l->dir.fd);
	free(l);
}

int records_live_fd(const struct records_live *l)
{
	return l->dir.fd;
}

int records_live_open(const struct records_live *l, const char *id)
{
	struct run_entry e = { .has_dir = true, .has_flat = true };

	snprintf(e.id, sizeof(e.id), "%s", id);
	return runs_record(&l->dir, &e);
}
