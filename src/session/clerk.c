#include "session/clerk.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/error.h"
#include "base/own.h"
#include "session/act.h"

enum clerk_state { CLERK_IDLE, CLERK_GIVEN, CLERK_ACTS };

/* Everything below `lock` is guarded by it. */
struct clerk {
	struct sessions *ss;
	const struct owner *owner;
	struct session_run run;
	struct decision todo; /* the thread's own */
	bool has_todo;
	int wake;
	pthread_mutex_t lock;
	pthread_cond_t given;
	enum clerk_state state;
	struct clerk_task task;
	bool has_word;
	struct clerk_word word;
};

static uint64_t room_of(const struct session_limit *l, uint64_t used)
{
	/* Past it nothing is ahead any more: what follows has followed. */
	return l->max == SESSION_NO_LIMIT || used > l->max ? SESSION_NO_LIMIT : l->max - used;
}

/* The hardest of what a chain of sessions wants. */
static void look_at(const struct session *s, struct clerk_word *w)
{
	enum clerk_wish wish = session_is_over(s->state)    ? WISH_KILL
	                       : s->state == SESSION_PAUSED ? WISH_PAUSE
	                                                    : WISH_GO;
	int64_t deadline = engine_deadline(s);

	if (wish > w->wish) {
		w->wish = wish;
		snprintf(w->reason, sizeof(w->reason), "%s", s->reason);
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

int clerk_look(struct sessions *ss, const char *id, const struct session *own,
               struct clerk_word *ret, struct ssb_error *err)
{
	struct clerk_word w = { .stored = true, .deadline_us = INT64_MAX };
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
	for (int depth = 1; s.parent[0] != '\0' && depth < SESSION_DEPTH; depth++) {
		char parent[SESSION_ID];
		memcpy(parent, s.parent, sizeof(parent));
		if (session_get(ss, parent, &s, err) != 0) {
			return -1;
		}
		look_at(&s, &w);
	}
	*ret = w;
	return 0;
}

/* What was decided about the usage itself stands before how things stand. */
static void decided(const struct decision *d, struct clerk_word *w)
{
	bool over = session_is_over(d->state);

	if (d->changed && (over || d->state == SESSION_PAUSED)) {
		w->wish = over ? WISH_KILL : WISH_PAUSE;
		w->grace_ms = d->grace_ms;
	} else if (!d->verdict.allowed && d->verdict.act == ACT_BLOCK) {
		/* The session goes on; what went too far does not. */
		w->wish = WISH_KILL;
		w->grace_ms = d->after.policy->grace_ms;
	} else {
		return;
	}
	snprintf(w->reason, sizeof(w->reason), "%s", d->verdict.reason);
}

static int take_news(struct clerk *c, struct ssb_error *err)
{
	char id[SESSION_ID];
	int got;

	while ((got = sessions_news(c->ss, id, err)) > 0) {
		/* Whichever it was: all that concern us are looked at. */
	}
	return got;
}

static int do_task(struct clerk *c, const struct clerk_task *t, struct clerk_word *w,
                   struct ssb_error *err)
{
	struct decision d = { 0 };
	bool used = t->kind != CLERK_LOOK;

	if ((t->placed && session_run_placed(c->ss, &t->run, err) != 0) ||
	    (t->news && take_news(c, err) != 0) ||
	    (used && session_run_used(c->ss, &t->run, &t->used, &d, err) != 0)) {
		return -1;
	}
	/* From here on the usage is stored: it must not be told again. */
	if (t->kind == CLERK_END) {
		*w = (struct clerk_word){ .stored = true };
		w->ended = session_run_end(c->ss, &t->run, t->exit_status, t->ending, err) == 0;
	} else if (clerk_look(c->ss, t->run.session, used ? &d.after : NULL, w, err) != 0) {
		if (!used) {
			return -1;
		}
		*w = (struct clerk_word){ .stored = true, .deadline_us = INT64_MAX };
	}
	if (used) {
		decided(&d, w);
		c->todo = d;
		c->has_todo = d.changed || d.notify;
	}
	return 0;
}

static void say(struct clerk *c, const struct clerk_word *w)
{
	pthread_mutex_lock(&c->lock);
	c->word = *w;
	c->has_word = true;
	c->state = CLERK_ACTS;
	pthread_mutex_unlock(&c->lock);
	(void)eventfd_write(c->wake, 1);
}

/* The keeper has heard of it, and looks after its own run. */
static void act(struct clerk *c)
{
	struct act_report report;
	struct ssb_error err = { 0 };

	if (c->has_todo) {
		(void)session_act(c->ss, c->owner, &c->todo, &c->run, &report, &err);
		c->has_todo = false;
	}
}

static void *clerk_main(void *arg)
{
	struct clerk *c = arg;
	size_t closed = 0;

	act(c);
	(void)session_close_lost(c->ss, c->owner, c->run.session, &c->run, &closed,
	                         &(struct ssb_error){ 0 });
	for (;;) {
		struct clerk_word w = { .stored = false };
		act(c);
		pthread_mutex_lock(&c->lock);
		if (c->state == CLERK_ACTS) {
			c->state = CLERK_IDLE;
			(void)eventfd_write(c->wake, 1);
		}
		while (c->state != CLERK_GIVEN) {
			pthread_cond_wait(&c->given, &c->lock);
		}
		struct clerk_task task = c->task;
		pthread_mutex_unlock(&c->lock);
		struct ssb_error err = { 0 };
		if (do_task(c, &task, &w, &err) != 0) {
			w = (struct clerk_word){ .err = err };
		}
		say(c, &w);
	}
	return NULL;
}

int clerk_new(struct sessions *ss, const struct owner *o, const struct session_run *run,
              const struct decision *first, struct clerk **ret, struct ssb_error *err)
{
	auto_free struct clerk *c = calloc(1, sizeof(*c));
	pthread_t thread;

	if (c == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "session", "out of memory");
	}
	*c = (struct clerk){ .ss = ss, .owner = o, .run = *run, .todo = *first };
	c->has_todo = first->changed || first->notify;
	c->state = CLERK_ACTS;
	c->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int failed = c->wake < 0 ? errno : pthread_mutex_init(&c->lock, NULL);
	failed = failed != 0 ? failed : pthread_cond_init(&c->given, NULL);
	failed = failed != 0 ? failed : pthread_create(&thread, NULL, clerk_main, c);
	if (failed != 0) {
		own_close(&c->wake);
		return ssb_fail(err, SSB_E_SYS, failed, "session", "a thread for the store");
	}
	(void)pthread_detach(thread);
	*ret = steal_ptr(&c);
	return 0;
}

int clerk_fd(const struct clerk *c)
{
	return c->wake;
}

bool clerk_busy(struct clerk *c)
{
	pthread_mutex_lock(&c->lock);
	bool busy = c->state != CLERK_IDLE || c->has_word;
	pthread_mutex_unlock(&c->lock);
	return busy;
}

void clerk_give(struct clerk *c, const struct clerk_task *task)
{
	pthread_mutex_lock(&c->lock);
	c->task = *task;
	c->state = CLERK_GIVEN;
	pthread_cond_signal(&c->given);
	pthread_mutex_unlock(&c->lock);
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
