/* test_trace_key.c - the owner's signing key: created once and private, the same for all runs that
 * start at the same time, and refused if other users could have changed it. */
#include <errno.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"
#include "trace/key.h"
#include "base/hex.h"
#include "base/own.h"
#include "os/tree.h"

#define RUNS 20

static char tmp[PATH_MAX - 64]; /* a new directory for each test */
static char state_dir[PATH_MAX];
static struct owner owner;

/* Simulates a file system without RENAME_NOREPLACE. */
static bool only_links;

int __real_renameat2(int from, const char *old, int to, const char *new, unsigned flags);
int __wrap_renameat2(int from, const char *old, int to, const char *new, unsigned flags);

int __wrap_renameat2(int from, const char *old, int to, const char *new, unsigned flags)
{
	if (only_links) {
		errno = EINVAL;
		return -1;
	}
	return __real_renameat2(from, old, to, new, flags);
}

static const char *at(const char *name) /* valid until the next call */
{
	static char path[PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/%s", state_dir, name);
	return path;
}

static int setup(void **state)
{
	snprintf(tmp, sizeof(tmp), "/tmp/test-trace-key-XXXXXX");
	if (mkdtemp(tmp) == NULL) {
		return -1;
	}
	snprintf(state_dir, sizeof(state_dir), "%s/state/skillsandbox", tmp);
	only_links = false;
	owner = (struct owner){ .uid = getuid(), .home = tmp, .state_dir = state_dir };
	return 0;
}

static int teardown(void **state)
{
	return tree_remove(AT_FDCWD, tmp);
}

static void load(struct trace_key *key)
{
	struct ssb_error err = { 0 };

	if (trace_key_load(&owner, key, &err) != 0) {
		fail_msg("%s: %s", err.where, err.text);
	}
}

/* trace_key_load() must fail with a message that contains `part`, and must not change its
 * output. */
static void refused(const char *part)
{
	struct trace_key key, before;
	struct ssb_error err = { 0 };

	memset(&key, 0x5a, sizeof(key));
	before = key;
	assert_int_equal(trace_key_load(&owner, &key, &err), -1);
	assert_memory_equal(&key, &before, sizeof(key));
	assert_int_not_equal(err.code, SSB_OK);
	assert_string_equal(err.where, "trace key");
	if (strstr(err.text, part) == NULL) {
		fail_msg("'%s' does not say '%s'", err.text, part);
	}
}

static void put(const char *name, const char *text, size_t len, mode_t mode)
{
	auto_fd fd = open(at(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), len);
	assert_int_equal(fchmod(fd, mode), 0);
}

static size_t get(const char *name, char *ret, size_t size)
{
	auto_fd fd = open(at(name), O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	ssize_t n = read(fd, ret, size);
	assert_true(n >= 0);
	return (size_t)n;
}

static unsigned mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	return st.st_mode & 07777U;
}

static unsigned names_in_state(void)
{
	DIR *d = opendir(state_dir);
	unsigned n = 0;

	assert_non_null(d);
	for (const struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
		n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	}
	closedir(d);
	return n;
}

static void made_on_first_use(void **state)
{
	struct trace_key key, again;
	char text[100];
	uint8_t seed[32], public[32], hash[32] = { 1 }, signature[64];

	mode_t umask_before = umask(0); /* the key must be private, whatever the umask is */
	load(&key);
	umask(umask_before);
	assert_int_equal(mode_of(state_dir), 0700);
	assert_int_equal(mode_of(at("trace.key")), 0600);
	assert_int_equal(names_in_state(), 2);

	assert_int_equal(get("trace.key", text, sizeof(text)), 65);
	assert_int_equal(text[64], '\n');
	assert_int_equal(hex_decode(text, 64, seed, 32), 0);
	struct ed25519_key pair;
	ed25519_key_init(&pair, seed);
	assert_memory_equal(&pair, &key.pair, sizeof(pair));

	assert_int_equal(get("trace.pub", text, sizeof(text)), 65);
	assert_int_equal(text[64], '\n');
	assert_int_equal(hex_decode(text, 64, public, 32), 0);
	assert_memory_equal(public, key.pair.public, 32);
	assert_memory_not_equal(public, seed, 32);

	load(&again);
	assert_memory_equal(&again, &key, sizeof(key));
	trace_key_sign(&key, hash, signature);
	assert_true(ed25519_verify(public, hash, 32, signature));
	trace_key_done(&key);
	memset(&again, 0, sizeof(again));
	assert_memory_equal(&again, &key, sizeof(key));
}

static void made_under_a_closed_umask(void **state)
{
	struct trace_key key;

	mode_t before = umask(0077);
	struct ssb_error err = { 0 };
	int rc = trace_key_load(&owner, &key, &err);
	umask(0277); /* with this umask, new files cannot be written */
	assert_int_equal(unlink(at("trace.key")), 0);
	rc |= trace_key_load(&owner, &key, &err);
	umask(before);
	assert_int_equal(rc, 0);
	assert_int_equal(mode_of(at("trace.key")), 0600);
}

static void every_owner_has_another(void **state)
{
	struct trace_key a, b;

	load(&a);
	assert_int_equal(unlink(at("trace.key")), 0);
	load(&b); /* makes a new key, and a new trace.pub */
	assert_memory_not_equal(a.pair.public, b.pair.public, 32);
	uint8_t public[32];
	struct ssb_error err = { 0 };
	assert_int_equal(trace_key_public(&owner, public, &err), 0);
	assert_memory_equal(public, b.pair.public, 32);
}

/* Twenty processes load the key for the first time at the same moment (they wait for the end of a
 * pipe): all must get the same key. */
static void all_who_start_at_once_agree(void **state)
{
	int gate[2], answers[2];
	uint8_t first[32], public[32];

	assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
	assert_int_equal(pipe2(answers, O_CLOEXEC), 0);
	for (int i = 0; i < RUNS; i++) {
		pid_t pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			struct trace_key key;
			struct ssb_error err = { 0 };
			char c;
			close(gate[1]);
			if (read(gate[0], &c, 1) != 0 || trace_key_load(&owner, &key, &err) != 0) {
				memset(&key, 0, sizeof(key));
			}
			_exit(write(answers[1], key.pair.public, 32) == 32 ? 0 : 1);
		}
	}
	close(gate[1]);
	close(gate[0]);
	for (int i = 0; i < RUNS; i++) {
		int status;
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	for (int i = 0; i < RUNS; i++) {
		assert_int_equal(read(answers[0], public, 32), 32);
		if (i == 0) {
			memcpy(first, public, sizeof(first));
		}
		assert_memory_equal(public, first, 32);
	}
	close(answers[0]);
	close(answers[1]);
	struct trace_key key;
	load(&key);
	assert_memory_equal(key.pair.public, first, 32);
	assert_int_equal(names_in_state(), 2); /* no temporary file remains */
}

static void all_agree_where_only_links_exist(void **state)
{
	only_links = true;
	all_who_start_at_once_agree(state);
}

static void what_is_no_key_is_refused(void **state)
{
	static const char good[] =
	        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60\n";
	static const struct {
		const char *what;
		size_t len;
		int at; /* offset of the byte that becomes `by`; -1: none */
		char by;
	} rows[] = {
		{ "empty", 0, -1, 0 },       { "cut short", 40, -1, 0 },
		{ "no newline", 64, -1, 0 }, { "upper case", 65, 1, 'D' },
		{ "no digit", 65, 63, 'g' }, { "a NUL", 65, 10, '\0' },
		{ "a space", 65, 64, ' ' },  { "a byte more", 66, 65, '0' },
	};
	struct trace_key key;
	char text[67] = "";

	load(&key); /* creates the directory */
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		memcpy(text, good, sizeof(good));
		if (rows[i].at >= 0) {
			text[rows[i].at] = rows[i].by;
		}
		put("trace.key", text, rows[i].len, 0600);
		refused("not 64 hexadecimal digits");
		/* the file is not changed */
		assert_int_equal(get("trace.key", text, sizeof(text)), rows[i].len);
	}
	put("trace.key", good, 65, 0600); /* the control: a valid file (first key of RFC 8032) */
	load(&key);
	assert_int_equal(key.pair.public[0], 0xd7);
	put("trace.key", good, 65, 0400);
	load(&key);
}

static void open_to_others_is_refused(void **state)
{
	static const mode_t modes[] = { 0640, 0604, 0660, 0620, 0602, 0610, 0601, 0644, 0777 };
	struct trace_key key;

	load(&key);
	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		assert_int_equal(chmod(at("trace.key"), modes[i]), 0);
		refused("open to others");
	}
	assert_int_equal(chmod(at("trace.key"), 0600), 0);
	load(&key);
	assert_int_equal(chmod(state_dir, 0770), 0);
	refused("others may write to the directory");
	assert_int_equal(chmod(state_dir, 0702), 0);
	refused("others may write to the directory");
	assert_int_equal(chmod(state_dir, 0755), 0);
	load(&key);
}

static void no_regular_file_is_refused(void **state)
{
	struct trace_key key;

	load(&key);
	char elsewhere[PATH_MAX];
	snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", tmp);
	assert_int_equal(rename(at("trace.key"), elsewhere), 0);
	assert_int_equal(symlink(elsewhere, at("trace.key")), 0);
	refused("is a symlink");
	assert_int_equal(unlink(at("trace.key")), 0);
	assert_int_equal(symlink("nowhere", at("trace.key")), 0);
	refused("is a symlink");
	assert_int_equal(unlink(at("trace.key")), 0);
	assert_int_equal(mkfifo(at("trace.key"), 0600), 0);
	refused("not a regular file");
	assert_int_equal(unlink(at("trace.key")), 0);
	assert_int_equal(mkdir(at("trace.key"), 0700), 0);
	refused("not a regular file");
	assert_int_equal(rmdir(at("trace.key")), 0);
	assert_int_equal(rename(elsewhere, at("trace.key")), 0);
	load(&key);
}

/* A key in another user's file or directory must be refused. Root gives the file, and then its
 * directory, to another user. A user cannot do that, and uses a directory of root (/usr). */
static void anothers_file_is_refused(void **state)
{
	struct trace_key key;

	load(&key);
	if (geteuid() == 0) {
		assert_int_equal(chown(at("trace.key"), 65534, (gid_t)-1), 0);
		refused("belongs to uid 65534");
		assert_int_equal(chown(at("trace.key"), 0, (gid_t)-1), 0);
		assert_int_equal(chown(state_dir, 65534, (gid_t)-1), 0);
		refused("belongs to uid 65534");
		assert_int_equal(chown(state_dir, 0, (gid_t)-1), 0);
	} else {
		owner.state_dir = "/usr";
		refused("belongs to uid 0");
		owner.state_dir = state_dir;
	}
	load(&key);
}

/* If trace.pub is missing, invalid, of another key, or a symlink, loading the key writes it
 * again. */
static void the_public_half_is_mended(void **state)
{
	struct trace_key key;
	uint8_t public[32];
	struct ssb_error err = { 0 };

	assert_int_equal(trace_key_public(&owner, public, &err), -1);
	assert_int_equal(err.code, SSB_E_NOT_FOUND);
	assert_int_equal(access(state_dir, F_OK), -1); /* reading the public key creates nothing */
	load(&key);

	for (int i = 0; i < 4; i++) {
		static const char other[] =
		        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a\n";
		assert_int_equal(unlink(at("trace.pub")), 0);
		err = (struct ssb_error){ 0 };
		if (i == 0) {
			assert_int_equal(trace_key_public(&owner, public, &err), -1);
			assert_int_equal(err.code, SSB_E_NOT_FOUND);
		} else if (i == 1) {
			put("trace.pub", "x", 1, 0644);
			assert_int_equal(trace_key_public(&owner, public, &err), -1);
		} else if (i == 2) {
			put("trace.pub", other, 65, 0644);
			assert_int_equal(trace_key_public(&owner, public, &err), 0);
			assert_memory_not_equal(public, key.pair.public, 32);
		} else {
			put("victim", "x", 1, 0600);
			assert_int_equal(symlink("victim", at("trace.pub")), 0);
			assert_int_equal(trace_key_public(&owner, public, &err), -1);
		}
		load(&key);
		err = (struct ssb_error){ 0 };
		assert_int_equal(trace_key_public(&owner, public, &err), 0);
		assert_memory_equal(public, key.pair.public, 32);
	}
	char text[8];
	/* the target of the symlink was not written */
	assert_int_equal(get("victim", text, sizeof(text)), 1);
}

/* If writing the key fails in the middle, this is an error, and no file remains. */
static void a_full_disk_leaves_no_half_key(void **state)
{
	struct rlimit before, none = { 0 };

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	none = before;
	none.rlim_cur = 10;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	struct trace_key key;
	struct ssb_error err = { 0 };
	int rc = trace_key_load(&owner, &key, &err);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(rc, -1);
	assert_int_equal(err.sys_errno, EFBIG);
	assert_int_equal(names_in_state(), 0);
	load(&key);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(made_on_first_use, setup, teardown),
		cmocka_unit_test_setup_teardown(made_under_a_closed_umask, setup, teardown),
		cmocka_unit_test_setup_teardown(every_owner_has_another, setup, teardown),
		cmocka_unit_test_setup_teardown(all_who_start_at_once_agree, setup, teardown),
		cmocka_unit_test_setup_teardown(all_agree_where_only_links_exist, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_no_key_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(open_to_others_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(no_regular_file_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(anothers_file_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(the_public_half_is_mended, setup, teardown),
		cmocka_unit_test_setup_teardown(a_full_disk_leaves_no_half_key, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
