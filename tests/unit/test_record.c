/* test_record.c - the lines of the record: chain, clock, caps, and a file that accepts no more. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"
#include "trace/record.h"
#include "trace/trace_limits.h"
#include "base/own.h"

static char path[64];
static int fd = -1;

static int setup(void **state)
{
	snprintf(path, sizeof(path), "/tmp/test-record-XXXXXX");
	fd = mkstemp(path);
	return fd >= 0 ? 0 : -1;
}

static int teardown(void **state)
{
	own_close(&fd);
	return unlink(path);
}

/* Checks the file as the manual describes it, with an independent program: all hashes match, there
 * are `n` lines, and the Python expression `condition` is true for the list `d` of lines. */
static void check_record(int n, const char *condition)
{
	static const char program[] =
	        "import hashlib, json, sys\n"
	        "last, d = bytes(32), []\n"
	        "for line in open(sys.argv[1], 'rb').read().splitlines(True):\n"
	        "    last = hashlib.sha256(last + line[:-76]).digest()\n"
	        "    assert line[-76:] == b',\"hash\":\"' + last.hex().encode() + b'\"}\\n'\n"
	        "    assert len(line) <= 65536\n"
	        "    d.append(json.loads(line))\n"
	        "assert [x['seq'] for x in d] == list(range(int(sys.argv[2]))), len(d)\n"
	        "mono = [x['mono'] for x in d]\n"
	        "assert mono == sorted(mono)\n"
	        "assert eval(sys.argv[3])\n";
	char count[16];
	pid_t pid = fork();

	snprintf(count, sizeof(count), "%d", n);
	if (pid == 0) {
		execl("/usr/bin/python3", "python3", "-I", "-c", program, path, count, condition,
		      (char *)NULL);
		_exit(127);
	}
	int status = -1;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static struct record *open_record(struct record *r)
{
	record_init(r);
	r->fd = fd;
	r->path = path;
	return r;
}

static bool put(struct record *r, const char *text, size_t len)
{
	struct json *j = record_begin(r, "stdout");

	json_key(j, "message");
	json_strn(j, text, len);
	return record_end(r);
}

static void test_chain(void **state)
{
	AUTO(record_done) struct record r;
	open_record(&r);
	char line[16];

	for (int i = 0; i < 3000; i++) { /* more data than the buffer can contain */
		snprintf(line, sizeof(line), "line %d", i);
		assert_true(put(&r, line, strlen(line)));
	}
	assert_true(put(&r, "\"}\n{\"seq\":9}\xff\0\x1b", 15));
	assert_int_equal(record_flush(&r), 0);
	check_record(3001, "d[2999]['message'] == 'line 2999' and d[7]['kind'] == 'stdout'");
	check_record(3001, "d[3000]['message'] == '\"}\\n{\"seq\":9}\\udcff\\0\\x1b'");
	check_record(3001, "__import__('re').fullmatch("
	                   "r'\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{6}Z', d[0]['time'])");
	struct stat st;
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, r.bytes);
	assert_int_equal(st.st_size, r.written);
}

static int64_t fake_wall;
static uint64_t fake_mono;

static void fake_clock(struct timespec *ret_wall, uint64_t *ret_mono_us)
{
	*ret_wall = (struct timespec){ fake_wall, 123456789 };
	*ret_mono_us = fake_mono;
}

static void test_clock_steps_back(void **state)
{
	/* { wall clock, monotonic clock }. In one row the monotonic clock goes back, because the
	 * record must not rely on the clock. */
	static const int64_t steps[][2] = {
		{ 1794747600, 5000 }, { 1794747601, 6000 }, { 1794744000, 7000 },   { 0, 7000 },
		{ -5, 6500 },         { 951782399, 9000 },  { 253402300800, 9001 },
	};
	AUTO(record_done) struct record r;
	open_record(&r);

	r.clock = fake_clock;
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		fake_wall = steps[i][0];
		fake_mono = (uint64_t)steps[i][1];
		assert_true(put(&r, "x", 1));
	}
	assert_int_equal(record_flush(&r), 0);
	check_record(7, "[x['mono'] for x in d] == [0, 1000, 2000, 2000, 2000, 4000, 4001]");
	check_record(7, "[x['time'] for x in d] == ["
	                "'2026-11-15T13:00:00.123456Z', '2026-11-15T13:00:01.123456Z', "
	                "'2026-11-15T12:00:00.123456Z', '1970-01-01T00:00:00.123456Z', "
	                "'1970-01-01T00:00:00.123456Z', '2000-02-28T23:59:59.123456Z', "
	                "'9999-12-31T23:59:59.123456Z']");
}

static void test_line_cap(void **state)
{
	static char text[2 * TRACE_LINE_BYTES];
	AUTO(record_done) struct record r;
	open_record(&r);

	memset(text, 'x', sizeof(text));
	assert_true(put(&r, "", 0));
	/* `around` is the length of a line without its message. From here on the clock stands
	 * still, so `mono` always has the same number of digits. */
	r.clock = fake_clock;
	fake_mono = r.begun_us + 7;
	size_t around = r.bytes;
	assert_true(put(&r, "", 0));
	around = r.bytes - around;
	assert_true(put(&r, text, TRACE_LINE_BYTES - around));
	assert_false(put(&r, text, TRACE_LINE_BYTES - around + 1));
	assert_false(put(&r, text, sizeof(text)));
	assert_true(put(&r, "after", 5));
	assert_int_equal(record_flush(&r), 0);
	check_record(4, "len(d[2]['message']) > 65000 and d[3]['message'] == 'after'");
}

/* The file size limit cuts a line at any byte: the file must still end with a complete line. */
static void test_file_full(void **state)
{
	struct rlimit old;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	(void)signal(SIGXFSZ, SIG_IGN);
	for (rlim_t room = 0; room < 700; room += 61) {
		AUTO(record_done) struct record r;
		open_record(&r);
		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
		for (int i = 0; i < 10; i++) {
			assert_true(put(&r, "0123456789", 10));
		}
		size_t line = r.bytes / 10;
		struct rlimit small = { room, old.rlim_max };
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
		int failed = record_flush(&r);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
		assert_int_equal(failed, -1);
		assert_int_equal(r.failure.sys_errno, EFBIG);
		/* The file could grow again, but after a failed write no more lines may be
		 * written. */
		(void)put(&r, "later", 5);
		assert_int_equal(record_flush(&r), -1);
		assert_int_equal(record_sync(&r), -1);
		/* The first line may be a byte shorter or longer, because `mono` may have another
		 * number of digits in it. */
		check_record((int)((room + 4) / line), "True");
	}
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_chain),
		TEST(test_clock_steps_back),
		TEST(test_line_cap),
		TEST(test_file_full),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
