/* notify_driver.c - a program that delivers messages, for tests/e2e/test_session_notify.py: the
 * herald of the product, whose outbox is two files instead of the store.
 *
 *   outbox.txt   one message on each line: KIND, URL, SECRET (or -), BODY, with tabs between them
 *   done.txt     the result of each attempt: N, STATUS, RETRY, DUE, ERROR
 *
 * "notify_driver deliver SECONDS" delivers in this process. "notify_driver start" starts a herald.
 * Environment variables: PGDRIVER_FAST repeats a failed attempt at once; PGDRIVER_SLOW delays the
 * answer "the outbox is empty" by 0.3 s. Their names begin with PG because a herald keeps such
 * variables. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "os/clock.h"
#include "os/file.h"
#include "policy/owner.h"
#include "session/herald.h"

#define MOST 512

struct session_store {
	char outbox[4200];
	char done[4200];
	uint64_t leased[MOST]; /* time at which the lease of a message ends */
};

struct state {
	bool over;
	unsigned tries;
	uint64_t due;
};

int session_store_open(const struct owner *o, struct session_store **ret, struct ssb_error *err)
{
	struct session_store *ss = calloc(1, sizeof(*ss));

	if (ss == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "driver", "memory");
	}
	snprintf(ss->outbox, sizeof(ss->outbox), "%s/outbox.txt", o->state_dir);
	snprintf(ss->done, sizeof(ss->done), "%s/done.txt", o->state_dir);
	*ret = ss;
	return 0;
}

void session_store_close(struct session_store *ss)
{
	free(ss);
}

static void read_states(const struct session_store *ss, struct state v[MOST])
{
	auto_file f = fopen(ss->done, "re");
	char line[1024];
	bool fast = getenv("PGDRIVER_FAST") != NULL;

	memset(v, 0, MOST * sizeof(v[0]));
	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		size_t n = 0;
		unsigned status = 0;
		uint64_t retry = 0;
		uint64_t due = 0;
		if (sscanf(line, "%zu %u %" SCNu64 " %" SCNu64, &n, &status, &retry, &due) == 4 &&
		    n < MOST) {
			v[n].over = status / 100 == 2 || retry == 0;
			v[n].tries++;
			v[n].due = fast ? 0 : due;
		}
	}
}

/* Copies the message in `line` into new memory. */
static void fill(struct outbox_item *item, char *line)
{
	char *part[4] = { 0 };

	for (size_t i = 0; i < 4; i++) {
		part[i] = strsep(&line, "\t\n");
	}
	item->kind = (enum notify_kind)strtol(part[0], NULL, 10);
	item->url = strdup(part[1]);
	item->secret = strcmp(part[2], "-") == 0 ? NULL : strdup(part[2]);
	item->body = strdup(part[3]);
	snprintf(item->session, sizeof(item->session), "session-1");
}

/* Takes the first message that is due and returns 1; returns 0 if none is due. *ret_wait is the
 * time until the next message is due, or -1 if there is none. */
static int look(struct session_store *ss, uint64_t lease, struct outbox_item *ret,
                int64_t *ret_wait)
{
	struct state states[MOST];
	auto_file f = fopen(ss->outbox, "re");
	uint64_t now = clock_ms();
	auto_free char *line = NULL;
	size_t room = 0;

	*ret_wait = -1;
	read_states(ss, states);
	for (size_t n = 0; f != NULL && n < MOST && getline(&line, &room, f) > 0; n++) {
		uint64_t due = states[n].due > ss->leased[n] ? states[n].due : ss->leased[n];
		int64_t wait = due > now ? (int64_t)(due - now) : 0;
		if (states[n].over) {
			continue;
		}
		if (*ret_wait < 0 || wait < *ret_wait) {
			*ret_wait = wait;
		}
		if (wait == 0 && ret != NULL) {
			ss->leased[n] = now + lease;
			ret->n = (int64_t)n;
			ret->tries = states[n].tries;
			fill(ret, line);
			return 1;
		}
	}
	return 0;
}

int outbox_take(struct session_store *ss, uint64_t lease_ms, struct outbox_item *ret,
                struct ssb_error *err)
{
	int64_t wait;

	(void)err;
	return look(ss, lease_ms, ret, &wait);
}

int outbox_wait(struct session_store *ss, int64_t *ret_ms, struct ssb_error *err)
{
	(void)err;
	(void)look(ss, 0, NULL, ret_ms);
	if (*ret_ms < 0 && getenv("PGDRIVER_SLOW") != NULL) {
		(void)usleep(300000);
	}
	return 0;
}

int outbox_done(struct session_store *ss, const struct outbox_item *item, unsigned status,
                const char *error, uint64_t retry_ms, struct ssb_error *err)
{
	char line[512];
	auto_fd fd = open(ss->done, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	int n = snprintf(line, sizeof(line), "%" PRId64 " %u %" PRIu64 " %" PRIu64 " %s\n", item->n,
	                 status, retry_ms, clock_ms() + retry_ms, error != NULL ? error : "");

	ss->leased[item->n] = 0;
	return fd >= 0 && file_write_all(fd, line, (size_t)n) == 0
	               ? 0
	               : ssb_fail(err, SSB_E_SYS, errno, "driver", "done.txt");
}

void outbox_item_done(struct outbox_item *item)
{
	free(item->url);
	free(item->secret);
	free(item->body);
	*item = (struct outbox_item){ 0 };
}

static int deliver(const struct owner *o, unsigned seconds, struct ssb_error *err)
{
	struct session_store *ss = NULL;

	if (session_store_open(o, &ss, err) != 0) {
		return -1;
	}
	int r = herald_deliver(ss, clock_ms() + seconds * 1000, err);
	session_store_close(ss);
	return r;
}

int main(int argc, char **argv)
{
	AUTO(owner_done) struct owner o = { 0 };
	struct ssb_error err = { 0 };
	bool unable = argc > 1 && strcmp(argv[1], "unable") == 0;
	int role = unable ? -1 : herald_role(argv);

	if (role >= 0) {
		return role;
	}
	if (owner_load(&o, &err) == 0 && argc > 2) {
		(void)deliver(&o, (unsigned)strtoul(argv[2], NULL, 10), &err);
	} else if (err.code == SSB_OK) {
		(void)herald_start(&o, &err);
	}
	if (err.code != SSB_OK) {
		fprintf(stderr, "%s: %s\n", err.where, err.text);
	}
	return err.code == SSB_OK ? 0 : 1;
}
