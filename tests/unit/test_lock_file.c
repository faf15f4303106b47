/* test_lock_file.c - the files of the approvals: which are invalid, to which skill they belong, and
 * their limits of size and number. */
#include "lock_world.h"

#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/hex.h"
#include "consent/lock_json.h"

/* ---- invalid files --------------------------------------------------------------- */

static void path_of(const char *named, char ret[256])
{
	uint8_t hash[SHA256_BYTES];
	char hex[2 * SHA256_BYTES + 1];

	sha256(named, strlen(named), hash);
	hex_encode(hash, sizeof(hash), hex);
	snprintf(ret, 256, "%s/approvals/%s.json", top, hex);
}

static void lock_path(char ret[256])
{
	path_of(skill, ret);
}

static void write_lock(const char *text, size_t len, mode_t mode)
{
	char path[256];

	lock_path(path);
	(void)unlink(path);
	auto_fd fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_int_equal(file_write_all(fd, text, len), 0);
	assert_int_equal(fchmod(fd, mode), 0);
}

static enum ssb_code load_code(void)
{
	AUTO(lock_done) struct lock l = { 0 };
	struct ssb_error err = { 0 };

	return lock_load(&owner, skill, &l, &err) == 0 ? SSB_OK : err.code;
}

/* Each row replaces one text of a valid approval. The result must be refused. */
static const struct {
	const char *from, *to;
} SPOILED[] = {
	{ "\"version\": 1", "\"version\": 2" },
	{ "\"version\": 1", "\"version\": 1, \"more\": 1" },
	{ "\"uses\": null", "\"uses\": -1" },
	{ "\"uses\": null", "\"uses\": \"1\"" },
	{ "\"uses\": null", "\"uses\": 1.5" },
	{ "\"expires\": null", "\"expires\": 0" },
	{ "\"expires\": null", "\"expires\": \"tomorrow\"" },
	/* without a time limit the value is null, not 0 */
	{ "\"expires\": null", "\"expires\": \"1970-01-01T00:00:00.000000Z\"" },
	{ "\"at\": \"2", "\"at\": \"x" },
	{ "\"format\": \"SKILL.md\"", "\"format\": \"SKILL.mD\"" },
	{ "\"option\": \"read\"", "\"option\": \"policy\"" },
	{ "\"option\": \"read\"", "\"option\": 0" },
	{ "\"option\": \"read\"", "\"option\": \"read\", \"more\": 1" },
	{ "\"value\": \"~/.ssh\"", "\"value\": \"~/.s\\u0000h\"" },
	{ "\"value\": \"~/.ssh\"", "\"value\": null" },
	{ "\"snapshot\": true", "\"snapshot\": 1" },
	{ "\"tree\": \"sha256:", "\"tree\": \"sha512:" },
	/* these rows change the files, so the digest of the tree does not match */
	{ "\"path\": \"SKILL.md\"", "\"path\": \"SKILL.mD\"" },
	{ "\"path\": \"SKILL.md\"", "\"path\": \"../SKILL.md\"" },
	{ "\"path\": \"SKILL.md\"", "\"path\": \"/SKILL.md\"" },
	{ "\"path\": \"SKILL.md\"", "\"path\": null" },
	{ "\"mode\": \"0644\"", "\"mode\": \"0755\"" },
	{ "\"mode\": \"0644\"", "\"mode\": \"644\"" },
	{ "\"mode\": \"0644\"", "\"mode\": \" 644\"" },
	{ "\"mode\": \"0644\"", "\"mode\": \"+644\"" },
	{ "\"mode\": \"0644\"", "\"mode\": 420" },
	{ "\"size\": 7", "\"size\": -7" },
	{ "\"size\": 7", "\"size\": 99999999999999" },
	{ "\"size\": 7", "\"size\": 7, \"link\": \"x\"" },
	{ "\"size\": 7", "\"size\": 7, \"more\": 1" },
	{ "\"asked\": [", "\"asked\": [1, " },
	{ "\"declined\": []", "\"declined\": {}" },
	{ "\"by\": \"a test\"", "\"by\": \"a test\", \"by\": \"root\"" },
	{ "}\n", "" },
	{ "}\n", "} {}\n" },
};

static void read_good(struct buf *out)
{
	char path[256];

	lock_path(path);
	auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
	buf_init(out, MAX_LOCK_BYTES);
	assert_int_equal(file_read_all(fd, out), 0);
}

static void not_understood(void **state)
{
	auto_buf good, bad;

	give(&FOR_GOOD);
	read_good(&good);
	buf_init(&bad, MAX_LOCK_BYTES);
	for (size_t i = 0; i < ARRAY_LEN(SPOILED); i++) {
		/* `at` is the text that is replaced: the first one, but for "}\n" the last one of
		 * the file. */
		const char *at = strcmp(SPOILED[i].from, "}\n") == 0
		                         ? good.data + good.len - 2
		                         : strstr(good.data, SPOILED[i].from);
		assert_non_null(at);
		buf_reset(&bad);
		buf_add(&bad, good.data, (size_t)(at - good.data));
		buf_adds(&bad, SPOILED[i].to);
		buf_adds(&bad, at + strlen(SPOILED[i].from));
		write_lock(bad.data, bad.len, 0600);
		if (load_code() != SSB_E_POLICY) {
			fail_msg("taken: %s", SPOILED[i].to);
		}
		write_lock(good.data, good.len, 0600);
		assert_int_equal(load_code(), SSB_OK);
	}
}

static void whose_it_is(void **state)
{
	char path[256];
	char other[96];
	auto_buf good;

	give(&FOR_GOOD);
	read_good(&good);
	lock_path(path);
	write_lock(good.data, good.len, 0666);
	assert_int_equal(load_code(), SSB_E_POLICY);
	write_lock(good.data, good.len, 0600);
	assert_int_equal(load_code(), SSB_OK);
	/* Two files are refused: a symlink to a valid approval, and the approval of another skill
	 * under the name of this skill's approval. */
	snprintf(other, sizeof(other), "%s/other", top);
	assert_int_equal(rename(path, other), 0);
	assert_int_equal(symlink(other, path), 0);
	assert_int_equal(load_code(), SSB_E_SYS);
	char *there = strstr(good.data, "/skill\"");
	assert_non_null(there);
	memcpy(there, "/skilL\"", 7);
	write_lock(good.data, good.len, 0600);
	assert_int_equal(load_code(), SSB_E_POLICY);
	/* An invalid approval can be revoked, too. */
	struct ssb_error err = { 0 };
	bool was = false;
	assert_int_equal(lock_remove(&owner, skill, &was, &err), 0);
	assert_true(was);
	assert_int_equal(load_code(), SSB_E_NOT_FOUND);
}

/* ---- bounds ---------------------------------------------------------------------- */

static struct lock lock_of(const char *named)
{
	static char words[][28] = { "n", "2026-11-15T13:20:00.123456Z", "b" };
	struct lock l = { .skill = (char *)(uintptr_t)named,
		          .name = words[0],
		          .format = SKILL_DECLARED,
		          .at = words[1],
		          .by = words[2],
		          .uses = -1 };

	skill_files_digest(&l.files, l.files.tree);
	return l;
}

/* Returns whether an approval with these files, and with the right digest for them, is valid. */
static bool taken(struct skill_file *v, size_t n)
{
	AUTO(lock_done) struct lock again = { 0 };
	struct lock l = lock_of("/s");
	auto_buf text;

	l.files = (struct skill_files){ .v = v, .n = n };
	skill_files_digest(&l.files, l.files.tree);
	buf_init(&text, MAX_LOCK_BYTES);
	lock_write(&text, &l);
	assert_false(text.failed);
	return lock_parse(text.data, text.len, &again) == NULL;
}

static struct skill_file file_of(const char *path, uint64_t size)
{
	return (struct skill_file){ .path = (char *)(uintptr_t)path, .size = size, .mode = 0644 };
}

/* Bad paths, a path that occurs twice, and a wrong order are refused, although the digest is
 * right. */
static void files_that_cannot_be(void **state)
{
	static const char *const BAD[] = { "",    ".",   "..",   "/a",     "a/",
		                           "a/.", "./a", "../a", "a/../b", "a//b" };
	static const char *const GOOD[] = { "a", "a/b", "...", ".a", "..a", "a./b", " " };
	static const char *const ORDERS[][2] = { { "a", "b" }, { "a", "a" }, { "b", "a" } };
	struct skill_file v[2];

	for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
		v[0] = file_of(BAD[i], 0);
		if (taken(v, 1)) {
			fail_msg("taken: '%s'", BAD[i]);
		}
	}
	for (size_t i = 0; i < ARRAY_LEN(GOOD); i++) {
		v[0] = file_of(GOOD[i], 0);
		assert_true(taken(v, 1));
	}
	for (size_t i = 0; i < ARRAY_LEN(ORDERS); i++) {
		v[0] = file_of(ORDERS[i][0], 0);
		v[1] = file_of(ORDERS[i][1], 0);
		assert_int_equal(taken(v, 2), i == 0);
	}
}

/* Files that are too large, alone or together, and too many files are refused. */
static void files_have_bounds(void **state)
{
	struct skill_file v[2] = { file_of("a", MAX_PINNED_BYTES), file_of("b", 0) };

	assert_true(taken(v, 2));
	v[1].size = 1;
	assert_false(taken(v, 2));
	v[0].size++;
	assert_false(taken(v, 1));
	auto_free struct skill_file *many = calloc(MAX_PINNED_FILES + 1, sizeof(*many));
	auto_free char *names = calloc(MAX_PINNED_FILES + 1, 8);
	assert_true(many != NULL && names != NULL);
	for (size_t i = 0; i <= MAX_PINNED_FILES; i++) {
		snprintf(names + 8 * i, 8, "%07zu", i);
		many[i] = file_of(names + 8 * i, 0);
	}
	assert_true(taken(many, MAX_PINNED_FILES));
	assert_false(taken(many, MAX_PINNED_FILES + 1));
}

/* A symlink has only the member "link" beside its path, and an empty directory only "dir". */
static void members_of_files(void **state)
{
	static const char *const EACH[][2] = { { "\"dir\": true", "\"dir\": true, \"size\": 0" },
		                               { "\"link\": \"x\"",
		                                 "\"link\": \"x\", \"dir\": true" } };
	char target[] = "x";

	for (size_t i = 0; i < ARRAY_LEN(EACH); i++) {
		AUTO(lock_done) struct lock good = { 0 };
		AUTO(lock_done) struct lock bad = { 0 };
		struct lock l = lock_of("/s");
		struct skill_file one = { .path = target, .dir = true, .mode = SKILL_DIR_MODE };
		auto_buf text, more;
		sha256("", 0, one.sha256);
		if (i == 1) {
			one = (struct skill_file){ .path = target, .link = target, .mode = 0777 };
			sha256(target, 1, one.sha256);
		}
		l.files = (struct skill_files){ .v = &one, .n = 1 };
		skill_files_digest(&l.files, l.files.tree);
		buf_init(&text, MAX_LOCK_BYTES);
		buf_init(&more, MAX_LOCK_BYTES);
		lock_write(&text, &l);
		assert_null(lock_parse(text.data, text.len, &good));
		const char *at = strstr(text.data, EACH[i][0]);
		assert_non_null(at);
		buf_add(&more, text.data, (size_t)(at - text.data));
		buf_adds(&more, EACH[i][1]);
		buf_adds(&more, at + strlen(EACH[i][0]));
		assert_string_equal(lock_parse(more.data, more.len, &bad), "a file");
	}
}

/* Like lock_store(), but does not wait for the disk. */
static void write_named(const char *named)
{
	struct lock l = lock_of(named);
	char path[256];
	auto_buf text = BUF(MAX_LOCK_BYTES);

	lock_write(&text, &l);
	path_of(named, path);
	auto_fd fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_int_equal(file_write_all(fd, text.data, text.len), 0);
}

static int as_it_is(struct lock *inout, const struct lock *before, void *arg, struct ssb_error *err)
{
	return 0;
}

static enum ssb_code store_code(const char *named)
{
	struct lock l = lock_of(named);
	struct ssb_error err = { 0 };

	return lock_store(&owner, &l, as_it_is, NULL, &err) == 0 ? SSB_OK : err.code;
}

static void bounds(void **state)
{
	AUTO(lock_list_done) struct lock_list l = { 0 };
	AUTO(lock_list_done) struct lock_list past = { 0 };
	struct ssb_error err = { 0 };
	char name[32];

	/* refused: an approval of a relative path would be invalid */
	assert_int_equal(store_code("relative"), SSB_E_LIMIT);
	assert_int_equal(store_code("/0"), SSB_OK);
	for (int i = 1; i < MAX_APPROVED - 1; i++) {
		snprintf(name, sizeof(name), "/%d", i);
		write_named(name);
	}
	assert_int_equal(store_code("/last"), SSB_OK);
	assert_int_equal(store_code("/past"), SSB_E_LIMIT);
	assert_int_equal(store_code("/0"), SSB_OK); /* replaces the first approval */
	assert_int_equal(lock_list(&owner, &l, &err), 0);
	assert_int_equal(l.n, MAX_APPROVED);
	assert_string_equal(l.v[0].skill, "/0");
	assert_string_equal(l.v[1].skill, "/1");
	assert_string_equal(l.v[2].skill, "/10");
	write_named("/past");
	assert_int_equal(lock_list(&owner, &past, &err), -1);
	assert_int_equal(err.code, SSB_E_LIMIT);
}

/* If the file of an approval has the name that belongs to another skill, the approval is invalid.
 * Invalid approvals are listed in order, too. */
static void lists_what_is_none(void **state)
{
	AUTO(lock_list_done) struct lock_list l = { 0 };
	struct ssb_error err = { 0 };
	char from[256], to[256];
	static const char *const NAMES[] = { "/b", "/a", "/c", "/d" };

	assert_int_equal(store_code("/good"), SSB_OK);
	for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
		write_named("/x");
		path_of("/x", from);
		path_of(NAMES[i], to);
		assert_int_equal(rename(from, to), 0);
	}
	assert_int_equal(lock_list(&owner, &l, &err), 0);
	assert_true(l.n == 1 && l.n_bad == ARRAY_LEN(NAMES));
	assert_string_equal(l.v[0].skill, "/good");
	for (size_t i = 1; i < l.n_bad; i++) {
		assert_true(strcmp(l.bad[i - 1].file, l.bad[i].file) < 0);
	}
}

static void is_there(void **state)
{
	char path[256];

	assert_false(lock_there(&owner, skill));
	give(&FOR_GOOD);
	assert_true(lock_there(&owner, skill));
	assert_false(lock_there(&owner, "/other"));
	/* lock_there() is also true if the approval is invalid, or a symlink to nothing. */
	write_lock("", 0, 0600);
	assert_true(lock_there(&owner, skill));
	lock_path(path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("/nonexistent", path), 0);
	assert_true(lock_there(&owner, skill));
	/* lock_there() is also true if the directory cannot be read. */
	snprintf(path, sizeof(path), "%s/loop", top);
	assert_int_equal(symlink(path, path), 0);
	owner.state_dir = path;
	bool there = lock_there(&owner, skill);
	owner.state_dir = top;
	assert_true(there);
}

/* If the directory is a symlink or a file, that is an error: it does not mean that nothing is
 * approved. */
static void the_directory_itself(void **state)
{
	char path[96];
	char other[96];
	AUTO(lock_list_done) struct lock_list l = { 0 };

	give(&FOR_GOOD);
	snprintf(path, sizeof(path), "%s/approvals", top);
	snprintf(other, sizeof(other), "%s/elsewhere", top);
	assert_int_equal(rename(path, other), 0);
	assert_int_equal(load_code(), SSB_E_NOT_FOUND);
	for (size_t i = 0; i < 2; i++) {
		struct ssb_error err = { 0 };
		assert_int_equal(i == 0 ? symlink(other, path) : mknod(path, S_IFREG | 0600, 0), 0);
		assert_int_equal(load_code(), SSB_E_POLICY);
		assert_true(lock_there(&owner, skill));
		assert_int_equal(lock_list(&owner, &l, &err), -1);
		assert_non_null(strstr(err.text, "/approvals' is a symlink or not a directory"));
		assert_int_equal(unlink(path), 0);
	}
	assert_int_equal(rename(other, path), 0);
	assert_int_equal(load_code(), SSB_OK);
}

static void grants_have_a_bound(void **state)
{
	AUTO(lock_done) struct lock l = { 0 };
	char value[16];

	for (int i = 0; i < MAX_GRANTS; i++) {
		snprintf(value, sizeof(value), "/%d", i);
		assert_int_equal(given_add(&l.grants, &l.n_grants, SSB_OPT_READ, value), 0);
	}
	assert_int_equal(given_add(&l.grants, &l.n_grants, SSB_OPT_READ, "/0"),
	                 0); /* this item is already in the list */
	assert_int_equal(given_add(&l.grants, &l.n_grants, SSB_OPT_WRITE, "/0"), -1);
	assert_int_equal(l.n_grants, MAX_GRANTS);
}

/* The longest text and the longest file are valid; one byte more is not. */
static void bounds_of_one(void **state)
{
	auto_free char *word = malloc(MAX_LOCK_TEXT + 2);
	struct lock l = lock_of("/long");
	struct ssb_error err = { 0 };
	struct ssb_error past = { 0 };
	auto_buf good;

	memset(word, 'x', MAX_LOCK_TEXT + 1);
	word[MAX_LOCK_TEXT + 1] = '\0';
	l.by = word;
	assert_int_equal(lock_store(&owner, &l, as_it_is, NULL, &past), -1);
	assert_int_equal(past.code, SSB_E_LIMIT);
	word[MAX_LOCK_TEXT] = '\0';
	assert_int_equal(lock_store(&owner, &l, as_it_is, NULL, &err), 0);
	give(&FOR_GOOD);
	read_good(&good);
	while (good.len < MAX_LOCK_BYTES && !good.failed) {
		buf_addc(&good, ' ');
	}
	write_lock(good.data, good.len, 0600);
	assert_int_equal(load_code(), SSB_OK);
	auto_free char *more = malloc(good.len + 1);
	memcpy(more, good.data, good.len);
	more[good.len] = ' ';
	write_lock(more, good.len + 1, 0600);
	assert_int_equal(load_code(), SSB_E_POLICY);
}

static size_t synced; /* number of directories that were synced */

int fsync(int fd)
{
	struct stat st;

	synced += fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
	return (int)syscall(SYS_fsync, fd);
}

/* A revoked approval must not come back if the machine loses power: the directory is synced. */
static void taken_back_for_good(void **state)
{
	struct ssb_error err = { 0 };
	bool was = false;

	give(&FOR_GOOD);
	assert_true(synced > 0);
	synced = 0;
	assert_int_equal(lock_remove(&owner, skill, &was, &err), 0);
	assert_true(was);
	assert_int_equal(synced, 1);
}

/* A child process approves the skill, and has to wait for the lock `held`. Meanwhile the test
 * writes the approval `other`, and then releases the lock. Returns the exit status of the child. */
static int give_while(int held, const struct buf *other)
{
	AUTO(skill_files_done) struct skill_files files = { 0 };
	struct ssb_plan plan = plan_of();
	struct ssb_error err = { 0 };
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		(void)close(held);
		_exit(consent_give(&owner, skill, &plan, NULL, &FOR_GOOD, &err) == 0 ? 0 : 1);
	}
	assert_int_equal(lock_files_read(skill, &files, &err), 0);
	/* When its copy of the skill exists, the child is about to wait for the lock. */
	for (int i = 0; i < 10000 && !snapshot_there(&owner, &files); i++) {
		(void)usleep(1000);
	}
	(void)usleep(10000);
	write_lock(other->data, other->len, 0600);
	assert_int_equal(flock(held, LOCK_UN), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* Two processes approve the skill at the same time. An item that one of them declines is not
 * granted by the other. */
static void declined_meanwhile(void **state)
{
	AUTO(lock_done) struct lock l = { 0 };
	char *declined[] = { (char[]){ "read ~/.ssh" }, NULL };
	const struct string_list list = { declined, 1 };
	const struct consent_terms without = { .by = "a test", .uses = -1, .declined = &list };
	struct ssb_error err = { 0 };
	auto_buf other;
	char path[256];
	int status = -1;
	bool was = false;

	give(&without);
	lock_path(path);
	auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
	buf_init(&other, MAX_LOCK_BYTES);
	assert_int_equal(file_read_all(fd, &other), 0);
	/* several tries, because the child waits only a short time for the lock */
	for (int i = 0; i < 20 && status != 0; i++) {
		assert_int_equal(consent_revoke(&owner, skill, &was, &err), 0);
		snprintf(path, sizeof(path), "%s/snapshots", top);
		(void)tree_remove(AT_FDCWD, path);
		snprintf(path, sizeof(path), "%s/approvals.lock", top);
		auto_fd held = open(path, O_RDWR | O_CLOEXEC);
		assert_int_equal(flock(held, LOCK_EX), 0);
		status = give_while(held, &other);
	}
	assert_int_equal(status, 0);
	assert_int_equal(lock_load(&owner, skill, &l, &err), 0);
	assert_int_equal(l.declined.n, 1);
	assert_string_equal(l.declined.v[0], "read ~/.ssh");
	assert_int_equal(l.n_grants, 2); /* the two variables */
}

/* A process keeps the lock as long as it writes to a busy disk; another process waits for the
 * lock. */
static void a_busy_disk_is_waited_for(void **state)
{
	char path[256], c;
	int there[2];

	give(&FOR_GOOD);
	snprintf(path, sizeof(path), "%s/approvals.lock", top);
	assert_int_equal(pipe(there), 0);
	pid_t pid = fork();
	if (pid == 0) {
		int fd = open(path, O_RDWR | O_CLOEXEC);
		(void)!write(there[1], flock(fd, LOCK_EX) == 0 ? "x" : "?", 1);
		(void)usleep(700000);
		_exit(0);
	}
	assert_int_equal(read(there[0], &c, 1), 1);
	assert_int_equal(c, 'x');
	give(&FOR_GOOD);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	(void)close(there[0]);
	(void)close(there[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(not_understood),
		T(whose_it_is),
		T(bounds),
		T(bounds_of_one),
		T(files_that_cannot_be),
		T(files_have_bounds),
		T(members_of_files),
		T(lists_what_is_none),
		T(is_there),
		T(the_directory_itself),
		T(grants_have_a_bound),
		T(taken_back_for_good),
		T(declined_meanwhile),
		T(a_busy_disk_is_waited_for),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
