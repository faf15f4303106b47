/* records_live.c - word of runs that begin, and of records that grow while somebody
 * wants to hear of them.
 *
 * The kernel tells of new names in the directory of the runs (inotify). A run that is
 * known to live is looked after by a timer, and only as long as one does: where nobody
 * has subscribed to it that is one question a second whether it still lives, and where
 * no run lives it is nothing at all. Runs from before the server's start become known
 * when somebody reads of them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "serve/records_priv.h"
#include "serve/uri.h"

#define LOOK_MS    200  /* at what somebody has subscribed to */
#define IDLE_MS    1000 /* whether a run still lives */
#define CHANGED_MS 500  /* several runs that begin are one change of the list */

struct followed {
	char id[RUN_ID_SIZE];
	uint64_t size; /* that was told of */
};

struct live {
	struct serve *serve;
	struct runs dir; /* its fd alone */
	int fd;          /* inotify */
	struct loop_watch *watch;
	struct loop_timer *look;
	struct loop_timer *changed;
	struct followed v[MAX_FOLLOWED];
	size_t n;
};

static void on_look(void *arg);

/* ---- runs that live -------------------------------------------------------------------- */

static const char *const FORMS[] = { URI_RUNS "%s", URI_RUNS "%s/trace", URI_RUNS "%s/output" };
#define URI_SIZE (sizeof(URI_RUNS) + RUN_ID_SIZE + sizeof("/output"))

static bool is_wanted(const struct live *l, const char *id)
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

static void tell(const struct live *l, const char *id)
{
	char uri[URI_SIZE];

	for (size_t i = 0; i < ARRAY_LEN(FORMS); i++) {
		snprintf(uri, sizeof(uri), FORMS[i], id);
		if (mcp_resource_wanted(l->serve->mcp, uri)) {
			mcp_resource_updated(l->serve->mcp, uri);
		}
	}
}

/* False: it is over, and that was told. */
static bool look_at(struct live *l, struct followed *f, bool wanted)
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
	/* Asked before the size is used: what comes between is seen the next time. */
	bool lives = run_file_live(fd);
	wanted = wanted && record_told(l->serve, fd, id);
	if (wanted && (uint64_t)st.st_size != f->size) {
		f->size = (uint64_t)st.st_size;
		tell(l, id);
	} else if (wanted && !lives) {
		tell(l, id);
	}
	return lives;
}

static void look_again(struct live *l, bool wanted)
{
	if (l->look == NULL && l->n > 0) {
		(void)loop_after(l->serve->loop, wanted ? LOOK_MS : IDLE_MS, on_look, l, &l->look);
	}
}

static void on_look(void *arg)
{
	struct live *l = arg;
	bool any = false;

	l->look = NULL;
	for (size_t i = l->n; i > 0; i--) {
		struct followed *f = &l->v[i - 1];
		bool wanted = is_wanted(l, f->id);
		any = any || wanted;
		if (!look_at(l, f, wanted)) {
			*f = l->v[--l->n];
		}
	}
	look_again(l, any);
}

void records_live_follow(struct live *l, const char *id)
{
	for (size_t i = 0; i < l->n; i++) {
		if (strcmp(l->v[i].id, id) == 0) {
			return;
		}
	}
	if (l->n < ARRAY_LEN(l->v)) {
		l->v[l->n] = (struct followed){ 0 };
		snprintf(l->v[l->n++].id, RUN_ID_SIZE, "%s", id);
		look_again(l, false);
	}
}

/* ---- runs that begin -------------------------------------------------------------------- */

static void on_changed(void *arg)
{
	struct live *l = arg;

	l->changed = NULL;
	mcp_list_changed(l->serve->mcp, MCP_RESOURCES);
}

static bool is_known(const struct live *l, const char *id)
{
	for (size_t i = 0; i < l->n; i++) {
		if (strcmp(l->v[i].id, id) == 0) {
			return true;
		}
	}
	return false;
}

static void take_event(void *arg, const struct inotify_event *e)
{
	struct live *l = arg;
	struct run_entry entry;

	if (e->len == 0 || !run_entry_from_name(&entry, e->name)) {
		return;
	}
	/* Its record gets a directory later: that is no other run. */
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
	struct live *l = arg;

	(void)events;
	runs_news_take(l->fd, take_event, l);
}

/* Without it nobody is told of new runs; everything else is as it was. */
static void watch_directory(struct live *l)
{
	l->dir.fd = runs_directory(l->serve->owner.state_dir);
	l->fd = l->dir.fd < 0 ? -1 : runs_news(l->dir.fd, IN_CREATE | IN_DELETE);
	if (l->fd < 0 || loop_watch(l->serve->loop, l->fd, EPOLLIN, on_event, l, &l->watch) != 0) {
		own_close(&l->fd);
	}
}

int records_live_new(struct serve *s, struct live **ret, struct ssb_error *err)
{
	struct live *l = calloc(1, sizeof(*l));

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

void records_live_free(struct live *l)
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

int records_live_fd(const struct live *l)
{
	return l->dir.fd;
}

int records_live_open(const struct live *l, const char *id)
{
	struct run_entry e = { .has_dir = true, .has_flat = true };

	snprintf(e.id, sizeof(e.id), "%s", id);
	return runs_record(&l->dir, &e);
}
