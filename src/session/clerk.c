/* clerk.c - the two threads of a keeper, and the calls of the keeper's own thread. See
 * clerk.h. */
#include "session/clerk.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/array.h"
#include "base/error.h"
#include "os/clock.h"
#include "session/act.h"

#define TODO    8
#define HOUR_MS 3600000

/* All fields below `lock` are guarded by it. */
struct clerk {
	struct session_store *ss;
	const struct owner *owner;
	struct session_run run;
	int given_fd; /* eventfd: a task was given */
	int news_fd;  /* session_news_fd(); -1: not listening yet, or this store never has news */
	char chain[SESSION_DEPTH][SESSION_ID];
	int wake;
	pthread_mutex_t lock;
	bool given;
	struct clerk_task task;
	bool has_word;
	struct clerk_word word;
	bool news;
	/* used by the actor */
	pthread_cond_t todo_changed;
	struct decision todo[TODO];
	size_t n_todo; /* tasks that wait, including the first, which is being enforced */
};

static uint64_t room_of(const struct session_limit *l, uint64_t used)
{
	if (l->max == SESSION_NO_LIMIT) {
		return SESSION_NO_LIMIT;
	}
	if (used <= l->max) {
		return l->max - used;
	}
	/* `used` has passed the limit. A limit that blocks or kills acts again at each report, so
	 * the next use must be reported at once: the room is 0. Any other limit acts only once,
	 * so it no longer limits the room. */
	return l->act == ACT_BLOCK || l->act == ACT_KILL ? 0 : SESSION_NO_LIMIT;
}

/* Returns how much of the grace is left. It is never more than the whole grace, even if the clock
 * of this machine is behind. */
static uint64_t grace_left(const struct session *s)
{
	int64_t whole = s->until_us - s->ended_us;
	int64_t left = s->until_us - clock_wall_us();

	left = left < whole ? left : whole;
	left = left > 0 ? left / 1000 : 0;
	return left < HOUR_MS ? (uint64_t)left : HOUR_MS;
}

/* Adds the session `s` to `w`, which keeps the hardest wish and the earliest deadline of the
 * chain. */
static void look_at(const struct session *s, struct clerk_word *w)
{
	enum clerk_wish wish = session_is_over(s->state)    ? WISH_KILL
	                       : s->state == SESSION_PAUSED ? WISH_PAUSE
	                                                    : WISH_GO;
	int64_t deadline = engine_deadline(s);

	if (wish > w->wish) {
		w->wish = wish;
		w->grace_ms = wish == WISH_KILL ? grace_left(s) : 0;
		snprintf(w->reason, sizeof(w->reason), "%s", s->reason);
	} else if (wish == WISH_KILL && grace_left(s) < w->grace_ms) {
		w->grace_ms = grace_left(s);
	}
	w->deadline_us = deadline < w->deadline_us ? deadline : w->deadline_us;
	for (size_t i = 0; i < SESSION_METERS; i++) {
		uint64_t room = room_of(&s->policy->limits[i], s->meters[i]);
		w->room[i] = room < w->room[i] ? room : w->room[i];
	}
	if (s->policy->on_store_loss > w->on_loss) {
		w->on_loss = s->policy->on_store_loss;
	}
}

int clerk_look(struct session_store *ss, const char *id, const struct session *own,
               struct clerk_word *ret, struct ssb_error *err)
{
	struct clerk_word w = { .stored = true, .looked = true, .deadline_us = INT64_MAX };
	struct session s;

	for (size_t i = 0; i < SESSION_METERS; i++) {
		w.room[i] = SESSION_NO_LIMIT;
	}
	if (own != NULL) {
		s = *own;
	} else if (session_get(ss, id, &s, err) != 0) {
		return -1;
	}
	look_at(&s, &w);
	memcpy(w.chain[0], s.id, sizeof(s.id));
	for (int depth = 1; s.parent[0] != '\0' && depth < SESSION_DEPTH; depth++) {
		memcpy(w.chain[depth], s.parent, sizeof(s.parent));
		if (session_get(ss, w.chain[depth], &s, err) != 0) {
			return -1;
		}
		look_at(&s, &w);
	}
	*ret = w;
	return 0;
}

static void wish_for(struct clerk_word *w, enum clerk_wish wish, uint64_t grace_ms,
                     const char *reason)
{
	if (wish > w->wish || (wish == WISH_KILL && w->wish == wish && grace_ms < w->grace_ms)) {
		w->wish = wish;
		w->grace_ms = grace_ms;
		snprintf(w->reason, sizeof(w->reason), "%s", reason);
	}
}

/* Adds to `w` what the store decided when this run reported its usage. */
static void take_decision(const struct decision *d, struct clerk_word *w)
{
	/* If w->looked is true, the chain was read after the decision, so `w` already has these
	 * states or later ones. */
	for (size_t i = 0; !w->looked && i < d->n_acted; i++) {
		enum session_state state = d->acted[i].state;
		wish_for(w,
		         session_is_over(state)    ? WISH_KILL
		         : state == SESSION_PAUSED ? WISH_PAUSE
		                                   : WISH_GO,
		         d->acted[i].grace_ms, d->verdict.reason);
	}
	/* A block does not end the session, but it ends the run whose usage caused it. */
	if (!d->verdict.allowed && d->verdict.act == ACT_BLOCK &&
	    !session_is_over(d->after.state)) {
		wish_for(w, WISH_KILL, d->after.policy->grace_ms, d->verdict.reason);
	}
}

/* ---- the actor ----------------------------------------------------------- */

/* Ends or stops the other runs of the session. Their keepers may not learn of the decision from the
 * store. */
static void enforce_decision(struct clerk *c, struct decision *d)
{
	struct session_store *ss = NULL;

	/* If the store cannot be opened, `ss` is NULL, and session_act() asks the keepers. */
	(void)session_store_open(c->owner, &ss, &(struct ssb_error){ 0 });
	session_act(ss, c->owner, d, &c->run);
	session_store_close(ss);
}

static void *actor_main(void *arg)
{
	struct clerk *c = arg;

	for (;;) {
		pthread_mutex_lock(&c->lock);
		while (c->n_todo == 0) {
			pthread_cond_wait(&c->todo_changed, &c->lock);
		}
		struct decision d = c->todo[0];
		pthread_mutex_unlock(&c->lock);
		enforce_decision(c, &d);
		pthread_mutex_lock(&c->lock);
		c->n_todo--;
		memmove(c->todo, c->todo + 1, c->n_todo * sizeof(c->todo[0]));
		pthread_cond_broadcast(&c->todo_changed);
		pthread_mutex_unlock(&c->lock);
		(void)eventfd_write(c->wake, 1);
	}
	return NULL;
}

/* Passes the deferred decision, if there is one, to the actor. */
static void add_todo(struct clerk *c)
{
	struct decision d;

	if (!session_deferred(c->ss, &d)) {
		return;
	}
	pthread_mutex_lock(&c->lock);
	while (c->n_todo == TODO) {
		pthread_cond_wait(&c->todo_changed, &c->lock);
	}
	c->todo[c->n_todo++] = d;
	pthread_cond_broadcast(&c->todo_changed);
	pthread_mutex_unlock(&c->lock);
}

/* ---- the clerk ----------------------------------------------------------- */

static int do_task(struct clerk *c, const struct clerk_task *t, struct clerk_word *w,
                   struct ssb_error *err)
{
	struct decision d = { 0 };
	bool used = t->kind != CLERK_LOOK;

	if ((t->placed && session_run_placed(c->ss, &t->run, err) != 0) ||
	    (used && session_run_used(c->ss, &t->run, &t->used, &d, err) != 0)) {
		return -1;
	}
	/* From here on the usage is stored. `stored` must be true even if the rest fails, so that
	 * the usage is not reported again. */
	if (t->kind == CLERK_END) {
		*w = (struct clerk_word){ .stored = true };
		w->ended = session_run_end(c->ss, &t->run, t->exit_status, t->ending, err) == 0;
	} else if (clerk_look(c->ss, t->run.session, used ? &d.after : NULL, w, err) != 0) {
		if (!used) {
			return -1;
		}
		*w = (struct clerk_word){ .stored = true, .err = *err };
	}
	if (used) {
		take_decision(&d, w);
		add_todo(c);
	}
	if (w->looked) {
		memcpy(c->chain, w->chain, sizeof(c->chain));
	}
	return 0;
}

static void publish_word(struct clerk *c, const struct clerk_word *w)
{
	pthread_mutex_lock(&c->lock);
	c->word = *w;
	c->has_word = true;
	c->given = false;
	pthread_mutex_unlock(&c->lock);
	(void)eventfd_write(c->wake, 1);
}

/* Returns true if `id`, whose state changed, is this run's session or an ancestor. "" means that
 * any session may have changed. */
static bool concerns_us(const struct clerk *c, const char *id)
{
	return id[0] == '\0' ||
	       ARRAY_HAS(session, c->chain, SESSION_DEPTH, strcmp(*session, id) == 0);
}

/* Returns false if the store is lost; then there are no news until it is back. */
static bool hear_news(struct clerk *c)
{
	char id[SESSION_ID];
	struct ssb_error err = { 0 };
	bool ours = false;
	int got;

	while ((got = session_news(c->ss, id, &err)) > 0) {
		ours = ours || concerns_us(c, id);
	}
	if (ours || got < 0) {
		pthread_mutex_lock(&c->lock);
		c->news = true;
		pthread_mutex_unlock(&c->lock);
		(void)eventfd_write(c->wake, 1);
	}
	return got == 0;
}

/* `there` is true if the last call of the store succeeded. Only then does the clerk start to
 * listen for news: to start, it must wait for the server's answer. */
static struct clerk_task wait_for_task(struct clerk *c, bool there)
{
	struct clerk_task task;
	eventfd_t n;

	if (there && c->news_fd < 0) {
		c->news_fd = session_news_fd(c->ss);
	}
	for (bool given = false; !given;) {
		struct pollfd p[2] = { { c->given_fd, POLLIN, 0 },
			               { there ? c->news_fd : -1, POLLIN, 0 } };
		(void)poll(p, 2, -1);
		if (p[1].revents != 0) {
			there = hear_news(c);
		}
		(void)eventfd_read(c->given_fd, &n);
		pthread_mutex_lock(&c->lock);
		given = c->given;
		task = c->task;
		pthread_mutex_unlock(&c->lock);
	}
	return task;
}

static void *clerk_main(void *arg)
{
	struct clerk *c = arg;
	size_t closed = 0;
	bool there = true;

	(void)session_close_lost(c->ss, c->owner, c->run.session, &c->run, &closed,
	                         &(struct ssb_error){ 0 });
	for (;;) {
		struct clerk_word w = { .stored = false };
		struct clerk_task task = wait_for_task(c, there);
		struct ssb_error err = { 0 };
		there = do_task(c, &task, &w, &err) == 0;
		if (!there) {
			w = (struct clerk_word){ .err = err };
		}
		publish_word(c, &w);
	}
	return NULL;
}

/* ---- the keeper's side --------------------------------------------------- */

static int start_threads(struct clerk *c)
{
	pthread_t clerk;
	pthread_t actor;
	int failed = pthread_mutex_init(&c->lock, NULL);

	failed = failed != 0 ? failed : pthread_cond_init(&c->todo_changed, NULL);
	failed = failed != 0 ? failed : pthread_create(&actor, NULL, actor_main, c);
	failed = failed != 0 ? failed : pthread_create(&clerk, NULL, clerk_main, c);
	if (failed == 0) {
		(void)pthread_detach(clerk);
		(void)pthread_detach(actor);
	}
	return failed;
}

int clerk_new(struct session_store *ss, const struct owner *o, const struct session_run *run,
              struct clerk **ret, struct ssb_error *err)
{
	struct clerk *c = calloc(1, sizeof(*c));

	if (c == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "session", "out of memory");
	}
	*c = (struct clerk){ .ss = ss, .owner = o, .run = *run, .news_fd = -1 };
	c->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	c->given_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int failed = c->wake < 0 || c->given_fd < 0 ? errno : start_threads(c);
	if (failed != 0) {
		/* `c` is not freed: the keeper exits now, and a thread that has started may use
		 * `c`. */
		return ssb_fail(err, SSB_E_SYS, failed, "session",
		                "cannot start the threads for the store");
	}
	add_todo(c);
	*ret = c;
	return 0;
}

int clerk_fd(const struct clerk *c)
{
	return c->wake;
}

bool clerk_busy(struct clerk *c)
{
	pthread_mutex_lock(&c->lock);
	bool busy = c->given || c->has_word;
	pthread_mutex_unlock(&c->lock);
	return busy;
}

bool clerk_acts(struct clerk *c)
{
	pthread_mutex_lock(&c->lock);
	bool acts = c->n_todo > 0;
	pthread_mutex_unlock(&c->lock);
	return acts;
}

bool clerk_news(struct clerk *c)
{
	pthread_mutex_lock(&c->lock);
	bool news = c->news;
	c->news = false;
	pthread_mutex_unlock(&c->lock);
	return news;
}

void clerk_give(struct clerk *c, const struct clerk_task *task)
{
	pthread_mutex_lock(&c->lock);
	assert(!c->given && !c->has_word);
	c->task = *task;
	c->given = true;
	pthread_mutex_unlock(&c->lock);
	(void)eventfd_write(c->given_fd, 1);
}

bool clerk_take(struct clerk *c, struct clerk_word *ret)
{
	eventfd_t n;

	(void)eventfd_read(c->wake, &n);
	pthread_mutex_lock(&c->lock);
	bool has = c->has_word;
	if (has) {
		*ret = c->word;
		c->has_word = false;
	}
	pthread_mutex_unlock(&c->lock);
	return has;
}
