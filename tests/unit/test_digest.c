/* test_digest.c - the line of the record about a skill's files. It has a digest of each file and
 * one of all files. No symlink is followed. A damaged cache of digests is ignored. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "unit.h"
#include "trace/files_line.h"
#include "trace/trace_limits.h"
#include "base/own.h"
#include "os/clock.h"
#include "skill/digest_cache.h"

static char tmp[64]; /* contains state/ and skill/ */
static char members[FILES_LIST_BYTES + 2048];

static int sh(const char *command)
{
	char line[1024];

	snprintf(line, sizeof(line), "cd %s && { %s; }", tmp, command);
	pid_t pid = fork();
	if (pid == 0) {
		execl("/bin/sh", "sh", "-c", line, (char *)NULL);
		_exit(127);
	}
	int status = -1;
	return waitpid(pid, &status, 0) == pid ? status : -1;
}

static int setup_in(const char *base)
{
	snprintf(tmp, sizeof(tmp), "%s/test-digest-XXXXXX", base);
	return mkdtemp(tmp) != NULL ? sh("mkdir -m 700 state skill && cd skill && echo one >a && "
	                                 "mkdir b && echo two >b/c && touch empty && "
	                                 "ln -s /etc/passwd link && mkfifo pipe && "
	                                 "touch -d '1 hour ago' a b/c empty")
	                            : -1;
}

static int setup(void **state)
{
	return setup_in("/tmp");
}

static int setup_on_tmpfs(void **state)
{
	return setup_in("/dev/shm");
}

static int teardown(void **state)
{
	return sh("cd / && rm -rf $OLDPWD");
}

static int open_in(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", tmp, name);
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static const char *walk_with(int stop_now)
{
	volatile sig_atomic_t stop = stop_now;
	auto_buf out = BUF(FILES_LIST_BYTES + 1024);
	auto_fd dir = open_in("skill");
	auto_fd state = open_in("state");

	files_line_members(dir, state, &stop, &out);
	assert_false(out.failed);
	snprintf(members, sizeof(members), "{%.*s}", (int)out.len, out.data);
	return members;
}

static const char *walk(void)
{
	return walk_with(0);
}

/* Computes the tree digest of skill/files.h independently, in Python. */
static const char TREE[] =
        "import hashlib, os, stat\n"
        "def tree(top):\n"
        "    names = [os.path.join(d, n) for d, dirs, files in os.walk(top) for n in dirs + "
        "files]\n"
        "    all = hashlib.sha256()\n"
        "    for name in sorted(names, key=os.fsencode):\n"
        "        m = os.lstat(name).st_mode\n"
        "        if stat.S_ISLNK(m):\n"
        "            kind, data = 'l', os.fsencode(os.readlink(name))\n"
        "        elif stat.S_ISDIR(m):\n"
        "            kind, data = 'd', b''\n"
        "        elif stat.S_ISREG(m):\n"
        "            kind, data = 'f', open(name, 'rb').read()\n"
        "        else:\n"
        "            continue\n"
        "        if kind == 'd' and os.listdir(name):\n"
        "            continue\n"
        "        mode = m & 0o555 | 0o400 if kind == 'f' else 0o555\n"
        "        head = f'{kind}{mode:04o} {hashlib.sha256(data).hexdigest()} '\n"
        "        all.update(head.encode() + os.fsencode(os.path.relpath(name, top)) + b'\\0')\n"
        "    return 'sha256:' + all.hexdigest()\n";

/* Fails the test unless the Python expression `condition` is true. In it, `d` is the last line that
 * walk() made. */
static void check(const char *condition)
{
	char program[4096];

	snprintf(program, sizeof(program),
	         "%s\nimport hashlib, json, sys\n"
	         "h = lambda t: hashlib.sha256(t.encode()).hexdigest()\n"
	         "d = json.loads(sys.argv[1])\n"
	         "sys.exit(0 if eval(sys.argv[2]) else 1)\n",
	         TREE);
	pid_t pid = fork();
	if (pid == 0) {
		execl("/usr/bin/python3", "python3", "-I", "-c", program, members, condition,
		      (char *)NULL);
		_exit(127);
	}
	int status = -1;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status != 0) {
		fail_msg("not so: %s\n%.2000s", condition, members);
	}
}

static void test_what_is_said(void **state)
{
	walk();
	check("d['files'] == [['a', h('one\\n')], ['empty', h('')], "
	      "['link', h('/etc/passwd'), 'symlink'], ['b/c', h('two\\n')]]");
	check("d['count'] == 4 and d['bytes'] == 8 and 'incomplete' not in d");
}

static void test_tree_digest(void **state)
{
	char condition[160];

	assert_int_equal(sh("cd skill && echo >-d && mkdir void b/void && chmod 751 a && "
	                    "chmod 600 empty && ln -s nowhere b/x && : >b.c"),
	                 0);
	walk();
	snprintf(condition, sizeof(condition), "d['files_digest'] == tree('%s/skill')", tmp);
	check(condition);
	/* A change of the permission to write does not change the digest; a change of the
	 * permission to execute does. */
	assert_int_equal(sh("chmod 666 skill/b.c"), 0);
	check(condition);
	assert_int_equal(sh("chmod 744 skill/b.c"), 0);
	walk();
	check(condition);
}

/* For a file that has just been written, the digest in the cache is not used, because the file
 * could change again within the same tick of the clock. */
static void test_young_files_are_read_again(void **state)
{
	/* Both walks must be done within one second after the write; on a busy machine this takes
	 * several attempts. */
	for (int i = 0; i < 5; i++) {
		assert_int_equal(sh("touch -d '1 hour ago' skill/a skill/b/c skill/empty"), 0);
		uint64_t begun = clock_ms();
		walk();
		walk();
		if (clock_ms() - begun < 1000) {
			break;
		}
	}
	check("d['cached'] == 0");
	sleep(3);
	walk();
	walk();
	check("d['cached'] == 3");
	assert_int_equal(sh("echo ONE >skill/a"), 0); /* other bytes of the same size */
	walk();
	check("d['cached'] == 2 and d['files'][0][1] == h('ONE\\n')");
	/* The old mtime is restored: the ctime shows the change. */
	sleep(3);
	walk();
	walk();
	check("d['cached'] == 3");
	assert_int_equal(sh("echo TWO >skill/b/c; touch -r skill/empty skill/b/c"), 0);
	walk();
	check("d['cached'] == 2 and d['files'][3][1] == h('TWO\\n')");
}

static void test_wrong_caches(void **state)
{
	static const char *const wrong[] = {
		"truncate -s 100 $f",
		"truncate -s +72 $f",
		"printf x | dd of=$f bs=1 seek=70 conv=notrunc",
		"printf '\\377\\377\\377\\377' | dd of=$f bs=1 seek=8 conv=notrunc",
		"printf XX | dd of=$f conv=notrunc",
		": >$f",
		"rm $f && mkfifo $f",
		"rm $f && ln -s /dev/zero $f",
		"rm $f && mkdir $f",
	};
	char command[256];

	sleep(3);
	walk();
	walk();
	check("d['cached'] == 3"); /* the control */
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		snprintf(command, sizeof(command),
		         "f=$(echo state/digests/*) && { %s; } 2>/dev/null", wrong[i]);
		assert_int_equal(sh(command), 0);
		walk();
		check("d['cached'] == 0 and d['count'] == 4 and d['files'][0][1] == h('one\\n')");
		assert_int_equal(sh("rmdir state/digests/* 2>/dev/null; true"), 0);
		walk();
		walk();
		check("d['cached'] == 3");
	}
}

static void test_stopped(void **state)
{
	sleep(3);
	walk();
	walk_with(1);
	check("d['incomplete'] and d['files_digest'] is None");
	walk(); /* the failed walk_with(1) has left the cache as it was */
	check("d['cached'] == 3 and 'incomplete' not in d");
}

static void test_hostile_directories(void **state)
{
	/* Names that are not UTF-8, too many names for one line, and directories that are too
	 * deep. */
	assert_int_equal(sh("cd skill && : >\"$(printf 'x\\377\\n\\033')\" && "
	                    "i=0; while [ $i -lt 1500 ]; do : >f$i; i=$((i+1)); done"),
	                 0);
	walk();
	check("d['count'] == 1505 and d['files_cut'] and 300 < len(d['files']) < 1505");
	check("d['files_digest'].startswith('sha256:')");
	assert_int_equal(sh("cd skill && rm f* && i=0; while [ $i -lt 70 ]; do mkdir d && cd d; "
	                    "i=$((i+1)); done; : >deep"),
	                 0);
	walk();
	check("d['incomplete'] and d['files_digest'] is None and d['count'] == 5");
	check("d['files'][3][0] == 'x\\udcff\\n\\x1b' and d['files'][4][0] == 'b/c'");
}

#define OWN "mkdir p && echo two >p/q && echo one >main"

/* Makes a skill with the shell commands `make`: the two files of OWN and something hostile, which
 * must not keep the files of OWN out of the line. */
static void check_own(const char *make)
{
	char command[512];

	snprintf(command, sizeof(command), "rm -rf skill && mkdir skill && cd skill && %s", make);
	assert_int_equal(sh(command), 0);
	walk();
	check("d['incomplete'] and d['files_digest'] is None");
	/* All other files are empty. */
	check("d['files'][0] == ['main', h('one\\n')] and d['bytes'] == 8");
}

/* A tmpfs lists names by age, and ext4 lists them by hash. With three deep directories, at least
 * one of them is read before the files of OWN. */
static void test_order_of_names(void **state)
{
#define DEEP                                                                                       \
	"for h in 0 n z; do (for i in $(seq 70); do mkdir $h && cd $h; done; : >deep) || exit; "   \
	"done"
	check_own(OWN " && " DEEP);
	check_own(DEEP " && " OWN);
}

static void test_more_names_than_files(void **state)
{
	check_own(OWN " && mkdir 0 && cd 0 && seq 100100 | xargs touch");
}

/* The process that digests a skill must report the same line as walk(), or nothing. */
static void test_process(void **state)
{
	struct files_line d = FILES_LINE_NONE;
	auto_buf out;
	auto_fd dir = open_in("skill");
	char state_dir[128];

	buf_init(&out, sizeof(members));
	assert_false(files_line_finish(&d, 0, &out)); /* no process was started */
	snprintf(state_dir, sizeof(state_dir), "%s/state", tmp);
	files_line_start(&d, dir, state_dir);
	assert_true(files_line_finish(&d, 20000, &out));
	walk();
	assert_int_equal(out.len, strlen(members) - 2);
	assert_memory_equal(out.data, members + 1, out.len);

	/* without files_line_finish(), no process must be left, either */
	files_line_start(&d, dir, state_dir);
	assert_true(d.process >= 0);
	files_line_stop(&d);
	assert_true(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);

	buf_reset(&out);
	files_line_start(&d, -1, state_dir); /* the process cannot open the directory */
	assert_true(files_line_finish(&d, 20000, &out));
	assert_int_equal(out.len, 0);
}

static bool read_here(const char *name, struct buf *out)
{
	struct files_line d = FILES_LINE_NONE;
	auto_fd dir = open_in(name);

	assert_true(dir >= 0);
	buf_reset(out);
	files_line_read(&d, dir);
	assert_true(d.process < 0 && d.fd < 0);
	bool did = files_line_finish(&d, 0, out);
	assert_false(files_line_finish(&d, 0, out)); /* a line is returned only once */
	return did;
}

/* A small skill is read without a process. The result is the same. */
static void test_small_skill(void **state)
{
	auto_buf out;

	buf_init(&out, sizeof(members));
	assert_true(read_here("skill", &out));
	walk();
	assert_int_equal(out.len, strlen(members) - 2);
	assert_memory_equal(out.data, members + 1, out.len);
	check("d['count'] == 4 and d['cached'] == 0");
	/* At each limit the skill is small; with one more file, byte or directory it is not. */
	assert_int_equal(sh("mkdir n && cd n && seq 32 | xargs touch"), 0);
	assert_true(read_here("n", &out));
	assert_int_equal(sh("touch n/33"), 0);
	assert_false(read_here("n", &out));
	assert_int_equal(sh("mkdir s && head -c 262144 /dev/zero >s/a"), 0);
	assert_true(read_here("s", &out));
	assert_int_equal(sh("echo >s/b"), 0);
	assert_false(read_here("s", &out));
	assert_int_equal(sh("mkdir d && cd d && seq 31 | xargs mkdir"), 0);
	assert_true(read_here("d", &out));
	assert_int_equal(sh("mkdir d/32"), 0);
	assert_false(read_here("d", &out));
	assert_int_equal(out.len, 0);
}

/* A skill on a file system that may not answer (/proc) is not read without a process. */
static void test_small_skill_elsewhere(void **state)
{
	auto_buf out;
	auto_fd dir = open("/proc/self/task", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct files_line d = FILES_LINE_NONE;

	buf_init(&out, sizeof(members));
	files_line_read(&d, dir);
	assert_false(files_line_finish(&d, 0, &out));
}

/* A file of the cache that no run has used for a long time is removed. Each use sets its time
 * anew. */
static void test_prune(void **state)
{
	char state_dir[128];
	time_t before = time(NULL) - 100;

	snprintf(state_dir, sizeof(state_dir), "%s/state", tmp);
	assert_int_equal(digest_cache_prune(state_dir, before, false), 0); /* no digest file yet */
	sleep(3);
	walk();
	assert_int_equal(sh("touch -d @1000 state/digests/*; ln -s a state/digests/a"), 0);
	walk();
	check("d['cached'] == 3");
	assert_int_equal(digest_cache_prune(state_dir, before, false), 0);
	assert_int_equal(sh("touch -h -d @1000 state/digests/*"), 0);
	assert_int_equal(digest_cache_prune(state_dir, before, true), 1);
	assert_int_equal(digest_cache_prune(state_dir, before, false), 1);
	/* the symlink stays, because the cache did not make it */
	assert_int_equal(sh("test $(ls state/digests) = a"), 0);
}

/* If the process that digests neither ends nor reacts to SIGTERM, it is killed: it may delay the
 * end of a run by at most FILES_WAIT_MS. */
static void test_end_is_in_time(void **state)
{
	int p[2];
	auto_buf out;

	buf_init(&out, sizeof(members));
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (pid == 0) {
		(void)signal(SIGTERM, SIG_IGN);
		for (;;) {
			(void)pause();
		}
	}
	(void)close(p[1]);
	struct files_line d = { .started = true, .process = pidfd_open(pid, 0), .fd = p[0] };
	assert_true(d.process >= 0);
	uint64_t begun = clock_ms();
	assert_true(files_line_finish(&d, FILES_WAIT_MS, &out));
	uint64_t took = clock_ms() - begun;
	assert_int_equal(out.len, 0);
	assert_int_equal(kill(pid, 0), -1);
	assert_true(took >= FILES_WAIT_MS / 2 && took < FILES_WAIT_MS + 10000);
}

int main(void)
{
#define TEST(f)     cmocka_unit_test_setup_teardown(f, setup, teardown)
#define ON_TMPFS(f) cmocka_unit_test_setup_teardown(f, setup_on_tmpfs, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_what_is_said),
		TEST(test_tree_digest),
		TEST(test_young_files_are_read_again),
		TEST(test_wrong_caches),
		TEST(test_stopped),
		TEST(test_process),
		TEST(test_small_skill),
		TEST(test_small_skill_elsewhere),
		ON_TMPFS(test_small_skill),
		TEST(test_hostile_directories),
		TEST(test_end_is_in_time),
		TEST(test_prune),
		TEST(test_order_of_names),
		ON_TMPFS(test_hostile_directories),
		ON_TMPFS(test_order_of_names),
		ON_TMPFS(test_more_names_than_files),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
