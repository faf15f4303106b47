/* test_trace.c - the trace: its format, its limits, hostile text, and which output paths are
 * accepted. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"
#include "trace/trace.h"
#include "trace/trace_limits.h"
#include "base/limits.h"
#include "base/own.h"
#include "os/tree.h"

static char tmp[PATH_MAX]; /* a new directory for each test */

static const char *at(const char *name) /* valid until the next call */
{
	static char path[PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/%s", tmp, name);
	return path;
}

static char *output_at(const char *name) /* the path for --trace-output */
{
	static char path[PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/%s", tmp, name);
	return path;
}

static int setup(void **state)
{
	snprintf(tmp, sizeof(tmp), "/tmp/test-trace-XXXXXX");
	return mkdtemp(tmp) != NULL ? 0 : -1;
}

static int teardown(void **state)
{
	return tree_remove(AT_FDCWD, tmp);
}

/* Returns a plan for which no file of this machine matters. */
static struct ssb_plan plan_of(char *trace_output)
{
	return (struct ssb_plan){ .name = "weather",
		                  .version = "1.0.0",
		                  .workdir = "/skill",
		                  .home = "/home/u",
		                  .trace_output = trace_output };
}

static struct trace *open_at(struct ssb_plan *plan)
{
	struct owner owner = { .home = "/home/u", .state_dir = tmp };
	struct ssb_error err = { 0 };
	struct trace *t = NULL;

	if (trace_open(plan, NULL, &owner, &t, &err) != 0) {
		fail_msg("%s: %s", err.where, err.text);
	}
	return t;
}

static enum ssb_code open_fails(struct ssb_plan *plan, const char *state_dir)
{
	struct owner owner = { .home = "/home/u", .state_dir = state_dir };
	struct ssb_error err = { 0 };
	struct trace *t = NULL;

	assert_int_equal(trace_open(plan, NULL, &owner, &t, &err), -1);
	assert_null(t);
	assert_true(err.text[0] != '\0');
	return err.code;
}

static void close_fine(struct trace *t)
{
	struct layer_report layers[LAYER_COUNT] = { 0 };

	layers[LAYER_SECCOMP].state = LAYER_ON;
	struct ssb_result result = { .exit_status = 3, .duration_us = 5 };
	struct ssb_error err = { 0 };

	layers[LAYER_LANDLOCK] = (struct layer_report){ LAYER_OFF_BEST_EFFORT, "kernel too old" };
	if (trace_close(t, layers, &result, &err) != 0) {
		fail_msg("%s: %s", err.where, err.text);
	}
	trace_free(t);
}

/* Parses the document with Python, and fails the test unless the Python expression `condition` is
 * true, in which `d` is the document. */
static void check_json(const char *path, const char *condition)
{
	static const char program[] = "import json,sys,re\n"
	                              "d = json.load(open(sys.argv[1], encoding='utf-8'))\n"
	                              "sys.exit(0 if eval(sys.argv[2]) else 1)\n";
	pid_t pid = fork();

	if (pid == 0) {
		execl("/usr/bin/python3", "python3", "-I", "-c", program, path, condition,
		      (char *)NULL);
		_exit(127);
	}
	int status = -1;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status != 0) {
		fail_msg("%s: not so: %s", path, condition);
	}
}

static bool exists(const char *path)
{
	struct stat st;
	return lstat(path, &st) == 0;
}

/* Writes to `out` the path that the record has at first (runs/ID.trace.jsonl), made from the path
 * runs/ID/trace.json. */
static void early_record(const char *path, char *out, size_t size)
{
	const char *name = strrchr(path, '/');

	snprintf(out, size, "%.*s.%sl", (int)(name - path), path, name + 1);
}

static void test_shape(void **state)
{
	struct ssb_plan plan = plan_of(NULL);
	struct trace *t = open_at(&plan);
	char path[PATH_MAX], part[PATH_MAX + 8], early[PATH_MAX + 8], record[PATH_MAX + 8];
	struct stat st;

	snprintf(path, sizeof(path), "%s", trace_path(t));
	snprintf(part, sizeof(part), "%s.part", path);
	snprintf(record, sizeof(record), "%sl", path);
	early_record(path, early, sizeof(early));
	assert_non_null(strstr(path, trace_id(t)));
	trace_eventf(t, EV_SKILL_STARTED, "skill %s", "weather");
	trace_event(t, EV_STDOUT, "a\0b", 3);
	trace_violation(t, EV_FILE_BLOCKED, "read %s", "/etc/shadow");
	assert_int_equal(trace_violations(t), 1);
	assert_true(exists(early));
	trace_place(t);
	assert_false(exists(early));
	assert_true(exists(record));
	assert_true(exists(part));
	assert_false(exists(path));
	close_fine(t);

	assert_false(exists(part));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	snprintf(strrchr(path, '/'), 1, "%s", "");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	snprintf(path + strlen(path), 16, "/trace.json");
	check_json(path, "d['schema_version'] == 1 and d['trace_id'] == d['run_id']");
	check_json(path, "re.fullmatch('[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-"
	                 "[0-9a-f]{12}', d['trace_id'])");
	check_json(path, "d['skill_name'] == 'weather' and d['skill_version'] == '1.0.0'");
	check_json(path, "isinstance(d['plan'], dict)");
	check_json(path, "[e['kind'] for e in d['events']] == "
	                 "['skill_started', 'stdout', 'file_blocked']");
	check_json(path, "d['events'][1]['message'] == 'a\\0b'");
	check_json(path,
	           "all(re.fullmatch(r'\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{6}Z', x) "
	           "for x in [d['started_at'], d['completed_at'], d['events'][0]['timestamp']])");
	check_json(path, "abs(__import__('datetime').datetime.fromisoformat(d['started_at'][:-1] + "
	                 "'+00:00').timestamp() - __import__('time').time()) < 60");
	check_json(path, "d['policy_violations'] == [d['events'][2]]");
	check_json(path, "d['violation_summary']['total_enforcements'] == 1");
	check_json(path, "d['layers']['seccomp']['state'] == 'on' and "
	                 "d['layers']['landlock'] == {'state': 'off_best_effort', "
	                 "'detail': 'kernel too old'} and len(d['layers']) == 9");
	check_json(path, "d['exit_code'] == 3 and d['result']['end'] == 'exited'");
	check_json(path, "d['counters']['events_dropped'] == 0");
}

static void test_no_violation_no_summary(void **state)
{
	struct ssb_plan plan = plan_of(output_at("t.json"));
	struct ssb_error err = { 0 };
	struct trace *t = open_at(&plan);

	assert_int_equal(trace_close(t, NULL, NULL, &err), 0);
	trace_free(t);
	check_json(plan.trace_output, "'violation_summary' not in d and d['events'] == []");
	check_json(plan.trace_output, "d['policy_violations'] == [] and d['exit_code'] is None");
}

static void test_hostile_bytes(void **state)
{
	struct ssb_plan plan = plan_of(output_at("t.json"));
	struct trace *t = open_at(&plan);
	char all[256];

	for (int i = 0; i < 256; i++) {
		all[i] = (char)i;
	}
	trace_event(t, EV_STDOUT, all, sizeof(all));
	trace_eventf(t, EV_STDERR, "%s",
	             "\"},{\"kind\":\"forged\"}],\"exit_code\":0}\n\xff\xe2\x80");
	trace_event(t, EV_STDOUT, "", 0);
	close_fine(t);
	check_json(plan.trace_output, "len(d['events']) == 3 and d['exit_code'] == 3");
	check_json(plan.trace_output, "d['events'][0]['message'].encode('utf-8', 'surrogateescape')"
	                              " == bytes(range(256))");
	check_json(plan.trace_output,
	           "d['events'][1]['message'].endswith('\\n\\udcff\\udce2\\udc80')");
}

static void test_text_cap(void **state)
{
	struct ssb_plan plan = plan_of(output_at("t.json"));
	struct trace *t = open_at(&plan);
	char text[MAX_EVENT_TEXT + 8];

	memset(text, 'x', sizeof(text));
	trace_event(t, EV_STDOUT, text, MAX_EVENT_TEXT);
	trace_event(t, EV_STDOUT, text, MAX_EVENT_TEXT + 1);
	trace_eventf(t, EV_STDOUT, "%.*s", MAX_EVENT_TEXT, text);
	trace_eventf(t, EV_STDOUT, "%.*s", MAX_EVENT_TEXT + 1, text);
	memcpy(text + MAX_EVENT_TEXT - 4, "\xc3\xa9\xc3\xa9\xc3\xa9", 6);
	trace_event(t, EV_STDOUT, text, MAX_EVENT_TEXT + 2);
	memset(text, '\x01', sizeof(text)); /* each of these bytes takes six characters in JSON */
	for (int i = 0; i < 20; i++) {
		trace_event(t, EV_STDOUT, text, sizeof(text));
	}
	close_fine(t);
	check_json(plan.trace_output, "d['events'][0]['message'] == 'x' * 4096");
	check_json(plan.trace_output, "d['events'][1]['message'] == 'x' * 4093 + '\\u2026'");
	check_json(plan.trace_output, "d['events'][2]['message'] == 'x' * 4096");
	check_json(plan.trace_output, "d['events'][3]['message'] == 'x' * 4093 + '\\u2026'");
	check_json(plan.trace_output, "d['events'][4]['message'] == 'x' * 4092 + '\\u2026'");
	check_json(plan.trace_output, "d['events'][24]['message'] == '\\1' * 4093 + '\\u2026'");
}

static void test_event_cap(void **state)
{
	struct ssb_plan plan = plan_of(output_at("t.json"));
	const size_t ordinary = ROOMS[ROOM_COMMON].parts[IN_DOCUMENT].lines +
	                        ROOMS[ROOM_OUTPUT].parts[IN_DOCUMENT].lines;

	struct trace *t = open_at(&plan);
	for (size_t i = 0; i < ordinary; i++) {
		trace_eventf(t, EV_STDOUT, "%zu", i);
	}
	close_fine(t);
	check_json(plan.trace_output, "len(d['events']) == 4912 == d['counters']['events']");
	check_json(plan.trace_output, "d['counters']['events_dropped'] == 0");

	t = open_at(&plan); /* the second run replaces the file of the first */
	for (size_t i = 0; i < ordinary + 1; i++) {
		trace_eventf(t, EV_STDOUT, "%zu", i);
	}
	for (size_t i = 0; i < ROOMS[ROOM_FRAME].parts[IN_DOCUMENT].lines + 1; i++) {
		trace_eventf(t, EV_EXIT_CODE, "%zu", i);
	}
	close_fine(t);
	check_json(plan.trace_output, "len(d['events']) == 4976");
	check_json(plan.trace_output, "d['counters']['events_dropped'] == 2");
	check_json(plan.trace_output, "d['events'][-1]['kind'] == 'exit_code' and "
	                              "d['events'][-1]['message'] == '63'");
}

static void test_violation_caps(void **state)
{
	struct ssb_plan plan = plan_of(output_at("t.json"));

	struct trace *t = open_at(&plan);
	const int most = 1000 + 20; /* common room + the room of the violations' class */
	for (int i = 0; i < most + 1; i++) {
		trace_violation(t, EV_FILE_BLOCKED, "%d", i);
	}
	assert_int_equal(trace_violations(t), most + 1);
	close_fine(t);
	check_json(plan.trace_output, "len(d['policy_violations']) == 1020");
	check_json(plan.trace_output, "d['counters']['violations_dropped'] == 1 and "
	                              "d['violation_summary']['total_enforcements'] == 1021");

	t = open_at(&plan); /* now the limit of bytes is reached before that of violations */
	for (int i = 0; i < 100; i++) {
		trace_violation(t, EV_FILE_BLOCKED, "%04096d", i);
	}
	close_fine(t);
	check_json(plan.trace_output, "63 < len(d['policy_violations']) < 68");
	check_json(plan.trace_output, "len(d['policy_violations']) + "
	                              "d['counters']['violations_dropped'] == 100");
}

static void test_output_is_replaced_not_written_through(void **state)
{
	struct ssb_plan plan = plan_of(output_at("t.json"));
	struct stat before, after;
	auto_file f = fopen(plan.trace_output, "w");
	assert_non_null(f);
	assert_int_equal(fstat(fileno(f), &before), 0);

	struct trace *t = open_at(&plan);
	/* Another process replaces the output file by a symlink while the skill runs. */
	assert_int_equal(unlink(plan.trace_output), 0);
	assert_int_equal(symlink("victim", plan.trace_output), 0);
	close_fine(t);
	assert_false(exists(at("victim")));
	assert_int_equal(lstat(plan.trace_output, &after), 0);
	assert_true(S_ISREG(after.st_mode));
	assert_true(after.st_ino != before.st_ino);
	check_json(plan.trace_output, "d['exit_code'] == 3");
}

static void test_output_that_is_no_file(void **state)
{
	struct ssb_plan plan = plan_of(output_at("t.json"));

	assert_int_equal(symlink("victim", plan.trace_output), 0);
	assert_int_equal(open_fails(&plan, tmp), SSB_E_USAGE);
	assert_int_equal(unlink(plan.trace_output), 0);
	assert_int_equal(mkfifo(plan.trace_output, 0600), 0);
	assert_int_equal(open_fails(&plan, tmp), SSB_E_USAGE);
	assert_int_equal(unlink(plan.trace_output), 0);
	assert_int_equal(mkdir(plan.trace_output, 0700), 0);
	assert_int_equal(open_fails(&plan, tmp), SSB_E_USAGE);
	assert_int_equal(rmdir(plan.trace_output), 0);
	plan.trace_output = "/dev/full";
	assert_int_equal(open_fails(&plan, tmp), SSB_E_USAGE);
	plan.trace_output = "/tmp/";
	assert_int_equal(open_fails(&plan, tmp), SSB_E_USAGE);
	plan.trace_output = "";
	assert_int_equal(open_fails(&plan, tmp), SSB_E_USAGE);

	plan.trace_output = output_at("t.json"); /* the control */
	close_fine(open_at(&plan));
}

static void test_unwritable(void **state)
{
	struct ssb_plan plan = plan_of(output_at("closed/t.json"));
	const char *closed = at("closed");

	assert_int_equal(open_fails(&plan, tmp), SSB_E_SYS); /* the directory does not exist */
	assert_int_equal(mkdir(closed, 0500), 0);
	assert_int_equal(chmod(tmp, 0755), 0);
	if (getuid() == 0) {
		(void)setfsuid(65534); /* root can write everywhere, so use another fsuid */
	}
	enum ssb_code file = open_fails(&plan, tmp);
	plan.trace_output = NULL;
	enum ssb_code dir = open_fails(&plan, closed);
	(void)setfsuid(getuid());
	assert_int_equal(file, SSB_E_SYS);
	assert_int_equal(dir, SSB_E_SYS);

	assert_int_equal(chmod(closed, 0700), 0); /* the control */
	plan.trace_output = output_at("closed/t.json");
	close_fine(open_at(&plan));
}

/* --trace-output in a directory that the skill can write to is refused. */
static void test_output_in_write_grant(void **state)
{
	struct stat st;
	assert_int_equal(mkdir(at("sub"), 0700), 0);
	assert_int_equal(stat(tmp, &st), 0);
	struct grant grant = { .access = ACCESS_WRITE,
		               .is_dir = true,
		               .fd = -1,
		               .dev = st.st_dev,
		               .ino = st.st_ino,
		               .path = tmp,
		               .target = tmp,
		               .where = "--write" };
	struct ssb_plan plan = plan_of(output_at("sub/t.json"));
	plan.grants = &grant;
	plan.n_grants = 1;

	struct trace *t = NULL;
	struct ssb_error err = { 0 };
	struct owner owner = { .home = "/home/u", .state_dir = tmp };
	assert_int_equal(trace_open(&plan, NULL, &owner, &t, &err), -1);
	assert_int_equal(err.code, SSB_E_USAGE);
	assert_null(t);

	/* the control: a directory that the skill can only read is accepted */
	grant.access = ACCESS_READ;
	close_fine(open_at(&plan));
	check_json(plan.trace_output, "d['exit_code'] == 3");
}

static void test_write_error_is_remembered(void **state)
{
	struct ssb_plan plan = plan_of(output_at("t.json"));
	struct rlimit old, small;
	struct ssb_error err = { 0 };

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = (struct rlimit){ 4096, old.rlim_max };
	(void)signal(SIGXFSZ, SIG_IGN);
	struct trace *t = open_at(&plan);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	for (int i = 0; i < 5000; i++) {
		trace_eventf(t, EV_STDOUT, "line %d", i);
	}
	int synced = trace_sync(t, &err);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(synced, -1);
	assert_int_equal(err.sys_errno, EFBIG);
	err = (struct ssb_error){ 0 };
	assert_int_equal(trace_close(t, NULL, NULL, &err), -1);
	assert_int_equal(err.sys_errno, EFBIG);
	trace_free(t);
	assert_false(exists(plan.trace_output));
}

static void test_crash_leaves_record(void **state)
{
	struct ssb_plan plan = plan_of(NULL);
	struct ssb_error err = { 0 };
	struct trace *t = open_at(&plan);
	char path[PATH_MAX], part[PATH_MAX + 8];

	snprintf(path, sizeof(path), "%s", trace_path(t));
	early_record(path, part, sizeof(part));
	trace_eventf(t, EV_SKILL_STARTED, "about to start");
	assert_int_equal(trace_sync(t, &err), 0);
	trace_eventf(t, EV_STDOUT, "never written");
	trace_free(t); /* closes only the fd, as a crash does */
	assert_false(exists(path));
	auto_file f = fopen(part, "r");
	assert_non_null(f);
	char line[65536];
	bool started = false;
	while (fgets(line, sizeof(line), f) != NULL) {
		started = started || strstr(line, "about to start") != NULL;
		assert_null(strstr(line, "never written"));
	}
	assert_true(started);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_shape),
		TEST(test_no_violation_no_summary),
		TEST(test_hostile_bytes),
		TEST(test_text_cap),
		TEST(test_event_cap),
		TEST(test_violation_caps),
		TEST(test_output_is_replaced_not_written_through),
		TEST(test_output_that_is_no_file),
		TEST(test_unwritable),
		TEST(test_output_in_write_grant),
		TEST(test_write_error_is_remembered),
		TEST(test_crash_leaves_record),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
