/* session_world.c - opens stores of sessions for tests, and sets their clock. */
#include "unit.h"
#include "session_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "trace/key.h"
#include "base/buf.h"
#include "os/file.h"

struct world w;
int64_t world_now;

static int64_t now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_REALTIME, &t);
	return world_now != 0 ? world_now : (int64_t)t.tv_sec * SECOND + t.tv_nsec / 1000;
}

static void open_store(void)
{
	struct ssb_error err = { 0 };

	if (session_store_open(&w.owner, &w.ss, &err) != 0) {
		fail_msg("%s: %s", err.where, err.text);
	}
	w.ss->now = now;
}

void world_open(const char *postgres)
{
	char path[160];

	w = (struct world){ .dir = "/tmp/test-session-XXXXXX" };
	assert_non_null(mkdtemp(w.dir));
	snprintf(w.state_dir, sizeof(w.state_dir), "%s/state", w.dir);
	snprintf(w.config_dir, sizeof(w.config_dir), "%s/config", w.dir);
	assert_int_equal(mkdir(w.state_dir, 0700), 0);
	assert_int_equal(mkdir(w.config_dir, 0700), 0);
	if (postgres != NULL) {
		snprintf(path, sizeof(path), "%s/policy.yaml", w.config_dir);
		FILE *f = fopen(path, "we");
		assert_non_null(f);
		fprintf(f, "store: \"%s\"\n", postgres);
		fclose(f);
		assert_int_equal(chmod(path, 0600), 0);
	}
	w.owner = (struct owner){ .uid = getuid(),
		                  .gid = getgid(),
		                  .home = w.dir,
		                  .user = "test",
		                  .config_dir = w.config_dir,
		                  .state_dir = w.state_dir };
	snprintf(w.prefix, sizeof(w.prefix), "t%s-", w.dir + strlen(w.dir) - 6);
	world_now = 0;
	open_store();
}

void world_reopen(void)
{
	session_store_close(w.ss);
	open_store();
}

void world_close(void)
{
	char command[128];

	session_store_close(w.ss);
	snprintf(command, sizeof(command), "rm -rf '%s'", w.dir);
	assert_int_equal(system(command), 0);
}

const char *world_id(const char *name)
{
	static char ids[8][SESSION_ID];
	static unsigned at;
	char *id = ids[at++ % 8];

	snprintf(id, SESSION_ID, "%s%s", w.prefix, name);
	return id;
}

static void good(int rc, const struct ssb_error *err)
{
	if (rc != 0) {
		fail_msg("%s: %s", err->where, err->text);
	}
}

struct decision world_start(const char *name, const char *parent, const char *yaml)
{
	struct ssb_error err = { 0 };
	struct ssb_diags *diags = ssb_diags_new();
	struct session_policy policy = { 0 };
	struct decision d = { 0 };

	good(session_policy_parse("test.yaml", yaml, strlen(yaml), &policy, diags, &err), &err);
	struct session_request req = { .id = world_id(name),
		                       .parent = parent != NULL ? world_id(parent) : NULL,
		                       .policy = &policy };
	good(session_start(w.ss, &req, &d, &err), &err);
	session_policy_done(&policy);
	ssb_diags_free(diags);
	return d;
}

struct decision world_check(const char *name, micros estimate)
{
	struct ssb_error err = { 0 };
	struct decision d = { 0 };

	good(session_check(w.ss, world_id(name), "llm_call", estimate, &d, &err), &err);
	return d;
}

struct decision world_settle(int64_t reservation, micros actual)
{
	struct ssb_error err = { 0 };
	struct decision d = { 0 };

	good(session_settle(w.ss, reservation, actual, &d, &err), &err);
	return d;
}

void world_become(const char *name, enum session_state to, const char *reason)
{
	struct ssb_error err = { 0 };
	struct decision d = { 0 };

	good(session_become(w.ss, world_id(name), to, reason, &d, &err), &err);
}

struct session world_get(const char *name)
{
	struct ssb_error err = { 0 };
	struct session s = { 0 };

	good(session_get(w.ss, world_id(name), &s, &err), &err);
	return s;
}

static int add_line(void *arg, const char *line, size_t len)
{
	buf_add(arg, line, len);
	return 0;
}

char *world_ledger(const char *name)
{
	struct ssb_error err = { 0 };
	struct buf out;

	buf_init(&out, 64 << 20);
	good(session_ledger(w.ss, world_id(name), add_line, &out, &err), &err);
	char *text = buf_steal(&out);
	assert_non_null(text);
	return text;
}

size_t world_lines(const char *name, const char *kind)
{
	auto_free char *text = world_ledger(name);
	char want[64];
	size_t n = 0;

	snprintf(want, sizeof(want), "\"kind\":\"%s\"", kind);
	for (const char *at = text; (at = strstr(at, want)) != NULL; at++) {
		n++;
	}
	return n;
}

struct verify_result world_verify(const char *text, size_t len)
{
	struct verify_result r = { 0 };
	uint8_t key[ED25519_PUBLIC];
	struct ssb_error err = { 0 };
	auto_fd fd = memfd_create("ledger", MFD_CLOEXEC);

	/* The key does not exist before the first signature. Without a key, verify_record() reports
	 * no ledger as complete. */
	bool known = trace_key_public(&w.owner, key, &err) == 0;
	struct verify_ask ask = { known ? key : NULL, "" };
	assert_int_equal(file_write_all(fd, text, len), 0);
	assert_int_equal(verify_record(fd, &ask, &r, NULL), 0);
	return r;
}
