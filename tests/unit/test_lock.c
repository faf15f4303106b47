/* Approvals in their store: what comes back, what is none, and for how long one holds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/limits.h"
#include "base/own.h"
#include "consent/consent.h"
#include "consent/lock_json.h"
#include "os/file.h"
#include "policy/options.h"

static char top[64];
static char skill[80];
static char *environment[] = { (char[]){ "HAVE=1" }, NULL };
static struct owner owner;

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *w)
{
	(void)st;
	(void)w;
	return flag == FTW_DP ? rmdir(path) : unlink(path);
}

static int open_up(const char *path, const struct stat *st, int flag, struct FTW *w)
{
	(void)st;
	(void)w;
	return flag == FTW_D ? chmod(path, 0700) : 0;
}

static void put(const char *name, const char *text)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/%s", skill, name);
	auto_fd fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_int_equal(file_write_all(fd, text, strlen(text)), 0);
}

static int setup(void **state)
{
	(void)state;
	snprintf(top, sizeof(top), "/tmp/ssb-lock-XXXXXX");
	assert_non_null(mkdtemp(top));
	snprintf(skill, sizeof(skill), "%s/skill", top);
	assert_int_equal(mkdir(skill, 0755), 0);
	put("SKILL.md", "a skill");
	owner = (struct owner){ .uid = getuid(),
		                .gid = getgid(),
		                .home = top,
		                .state_dir = top,
		                .environ = environment };
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	(void)nftw(top, open_up, 16, FTW_PHYS);
	return nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- a plan that lacks something ------------------------------------------------- */

static char *REQUESTED[] = { (char[]){ "read ~/.ssh" }, (char[]){ "environment HAVE" },
	                     (char[]){ "environment NOT" }, NULL };
static struct refusal REFUSALS[] = {
	{ .what = (char[]){ "read ~/.ssh" },
	  .option = SSB_OPT_READ,
	  .value = (char[]){ "~/.ssh" } },
	{ .what = (char[]){ "read /proc" }, .option = SSB_OPT_READ }, /* nobody can grant it */
};
static struct refusal WITHHELD[] = {
	{ .what = (char[]){ "environment HAVE" },
	  .option = SSB_OPT_ENV,
	  .value = (char[]){ "HAVE" } },
	{ .what = (char[]){ "environment NOT" },
	  .option = SSB_OPT_ENV,
	  .value = (char[]){ "NOT" } },
};

static char NAME[] = "s\x1b[1m\"x";

/* Of the manifest that is there. */
static struct ssb_plan plan_of(void)
{
	static char manifest[96];
	struct ssb_plan plan = { .name = NAME,
		                 .manifest = manifest,
		                 .skill_dir = skill,
		                 .format = SKILL_MARKDOWN,
		                 .refusals = REFUSALS,
		                 .n_refusals = 2,
		                 .withheld = WITHHELD,
		                 .n_withheld = 2,
		                 .requested = { .v = REQUESTED, .n = 3 } };
	auto_buf text;

	snprintf(manifest, sizeof(manifest), "%s/SKILL.md", skill);
	auto_fd fd = open(manifest, O_RDONLY | O_CLOEXEC);
	buf_init(&text, 1024);
	assert_int_equal(file_read_all(fd, &text), 0);
	sha256(text.data, text.len, plan.manifest_digest);
	return plan;
}

static void give(const struct consent_terms *terms)
{
	struct ssb_plan plan = plan_of();
	struct ssb_error err = { 0 };

	if (consent_give(&owner, skill, &plan, NULL, terms, &err) != 0) {
		fail_msg("%s", err.text);
	}
}

static enum consent look(void)
{
	AUTO(consent_found_done) struct consent_found f = { 0 };
	struct ssb_error err = { 0 };

	if (consent_look(&owner, skill, &f, &err) != 0) {
		fail_msg("%s", err.text);
	}
	return f.state;
}

static const struct consent_terms FOR_GOOD = { .by = "a test", .uses = -1 };

/* ---- what comes back ------------------------------------------------------------- */

static void comes_back(void **state)
{
	(void)state;
	AUTO(lock_done) struct lock l = { 0 };
	AUTO(lock_done) struct lock again = { 0 };
	struct ssb_error err = { 0 };
	char *declined[] = { (char[]){ "environment NOT" }, NULL };
	const struct string_list list = { declined, 1 };
	const struct consent_terms terms = {
		.by = "a \"test\"\n", .uses = 3, .expires = 4000000000, .declined = &list
	};
	auto_buf text, twice;

	give(&terms);
	assert_int_equal(lock_load(&owner, skill, &l, &err), 0);
	assert_string_equal(l.skill, skill);
	assert_string_equal(l.name, "s\x1b[1m\"x");
	assert_string_equal(l.by, "a \"test\"\n");
	assert_int_equal(l.uses, 3);
	assert_true(l.expires == 4000000000 && l.snapshot);
	assert_int_equal(l.n_grants, 2); /* not what was declined, nor what nobody grants */
	assert_string_equal(l.grants[0].value, "~/.ssh");
	assert_string_equal(l.grants[1].value, "HAVE");
	assert_int_equal(l.asked.n, 3);
	assert_int_equal(l.files.n, 1);
	buf_init(&text, MAX_LOCK_BYTES);
	buf_init(&twice, MAX_LOCK_BYTES);
	lock_write(&text, &l);
	assert_null(lock_parse(text.data, text.len, &again));
	lock_write(&twice, &again);
	assert_string_equal(text.data, twice.data);
}

static void states(void **state)
{
	(void)state;
	struct consent_terms past = FOR_GOOD;
	bool was = false;
	struct ssb_error err = { 0 };

	assert_int_equal(look(), CONSENT_NONE);
	give(&FOR_GOOD);
	assert_int_equal(look(), CONSENT_HOLDS);
	put("SKILL.md", "a Skill");
	assert_int_equal(look(), CONSENT_CHANGED);
	put("SKILL.md", "a skill");
	assert_int_equal(look(), CONSENT_HOLDS);
	past.expires = (int64_t)time(NULL) - 1;
	give(&past);
	assert_int_equal(look(), CONSENT_OVER);
	past.expires = (int64_t)time(NULL) + 100;
	give(&past);
	assert_int_equal(look(), CONSENT_HOLDS);
	assert_int_equal(consent_revoke(&owner, skill, &was, &err), 0);
	assert_true(was);
	assert_int_equal(look(), CONSENT_NONE);
	assert_int_equal(consent_revoke(&owner, skill, &was, &err), 0);
	assert_false(was);
}

/* The policy file's time, unless the owner says another. */
static void expires_by_policy(void **state)
{
	(void)state;
	struct ssb_plan plan = plan_of();
	struct consent_terms terms = FOR_GOOD;
	struct ssb_error err = { 0 };

	plan.consent.expires = 1000;
	for (int said = 0; said < 2; said++) {
		AUTO(lock_done) struct lock l = { 0 };
		int64_t now = (int64_t)time(NULL);
		terms.expires = said ? 4000000000 : 0;
		assert_int_equal(consent_give(&owner, skill, &plan, NULL, &terms, &err), 0);
		assert_int_equal(lock_load(&owner, skill, &l, &err), 0);
		assert_true(said ? l.expires == 4000000000
		                 : l.expires >= now + 1000 && l.expires < now + 1100);
	}
}

static void free_options(struct ssb_options **o)
{
	ssb_options_free(*o);
}

static void is_applied(void **state)
{
	(void)state;
	AUTO(consent_found_done) struct consent_found f = { 0 };
	AUTO(free_options) struct ssb_options *o = ssb_options_new();
	struct ssb_plan plan = plan_of();
	struct ssb_error err = { 0 };
	struct stat st;

	give(&FOR_GOOD);
	const struct options_mark mark = options_mark(o);
	assert_int_equal(consent_look(&owner, skill, &f, &err), 0);
	assert_int_equal(consent_apply(&owner, &f, o, &err), 0);
	assert_int_equal(consent_lift(&owner, &f, &plan, o, &err), 0);
	assert_int_equal(o->read.n, 1);
	assert_int_equal(o->env.n, 1); /* NOT is in nobody's environment */
	assert_string_equal(o->env.v[0], "HAVE");
	assert_int_equal(stat(o->skill_source, &st), 0);
	assert_int_equal(consent_hold(&f, &plan, &err), 0);
	assert_int_equal(f.state, CONSENT_HOLDS);
	assert_string_equal(plan.approved->by, "a test");
	assert_null(plan.still);
	plan.format = SKILL_SIDECAR; /* the owner has written another manifest since */
	assert_int_equal(consent_hold(&f, &plan, &err), 0);
	assert_int_equal(f.state, CONSENT_CHANGED);
	options_rewind(o, &mark);
	assert_true(o->read.n == 0 && o->env.n == 0 && o->skill_source == NULL);
	plan_approval_free(plan.approved);
}

/* What the policy file denies by now is lifted by nothing that was said before. */
static void policy_goes_first(void **state)
{
	(void)state;
	AUTO(consent_found_done) struct consent_found f = { 0 };
	AUTO(free_options) struct ssb_options *o = ssb_options_new();
	struct refusal denied[] = { REFUSALS[0], WITHHELD[0] };
	struct ssb_plan plan = plan_of();
	struct ssb_error err = { 0 };

	give(&FOR_GOOD);
	denied[0].value = denied[1].value = NULL;
	plan.refusals = &denied[0];
	plan.withheld = &denied[1];
	plan.n_refusals = plan.n_withheld = 1;
	assert_int_equal(consent_look(&owner, skill, &f, &err), 0);
	assert_int_equal(f.lock.n_grants, 3);
	assert_int_equal(consent_lift(&owner, &f, &plan, o, &err), 0);
	assert_true(o->read.n == 0 && o->env.n == 0);
}

/* Not what the owner looked at. */
static void of_what_was_shown(void **state)
{
	(void)state;
	AUTO(pinned_done) struct pinned shown = { 0 };
	struct ssb_plan plan = plan_of();
	struct ssb_error err = { 0 };
	struct ssb_error fine = { 0 };

	assert_int_equal(pinned_read(skill, &shown, &err), 0);
	put("new", "");
	assert_int_equal(consent_give(&owner, skill, &plan, &shown, &FOR_GOOD, &err), -1);
	assert_int_equal(err.code, SSB_E_POLICY);
	assert_int_equal(look(), CONSENT_NONE);
	pinned_done(&shown);
	assert_int_equal(pinned_read(skill, &shown, &fine), 0);
	assert_int_equal(consent_give(&owner, skill, &plan, &shown, &FOR_GOOD, &fine), 0);
	/* Nor of a manifest that is another one by now. */
	struct ssb_error other = { 0 };
	char manifest[112];
	snprintf(manifest, sizeof(manifest), "%s/skillsandbox.yaml", skill);
	plan.manifest = manifest;
	plan.format = SKILL_DECLARED;
	put("skillsandbox.yaml", "x");
	assert_int_equal(consent_give(&owner, skill, &plan, NULL, &FOR_GOOD, &other), -1);
	sha256("x", 1, plan.manifest_digest);
	assert_int_equal(consent_give(&owner, skill, &plan, NULL, &FOR_GOOD, &fine), 0);
}

/* More is granted of the same bytes; of others it begins anew. */
static void some_at_a_time(void **state)
{
	(void)state;
	static const struct {
		const char *value;
		size_t after;
	} STEPS[] = {
		{ "/a", 1 }, { "/b", 2 }, { "/b", 2 }, { NULL, 0 }, { "/c", 1 },
	};

	for (size_t i = 0; i < ARRAY_LEN(STEPS); i++) {
		AUTO(lock_done) struct lock l = { 0 };
		struct ssb_error err = { 0 };
		struct lock_grant g = { SSB_OPT_READ, (char *)(uintptr_t)STEPS[i].value };
		const struct consent_terms terms = {
			.by = "x", .uses = -1, .some = true, .grants = &g, .n_grants = 1
		};
		if (STEPS[i].value == NULL) {
			put("SKILL.md", "other");
			continue;
		}
		give(&terms);
		assert_int_equal(lock_load(&owner, skill, &l, &err), 0);
		assert_int_equal(l.n_grants, STEPS[i].after);
	}
}

/* ---- so many runs ---------------------------------------------------------------- */

#define PROCESSES 8

static void used_up(void **state)
{
	(void)state;
	AUTO(consent_found_done) struct consent_found f = { 0 };
	struct consent_terms terms = FOR_GOOD;
	struct ssb_plan plan = plan_of();
	struct ssb_error err = { 0 };
	struct ssb_error none = { 0 };

	terms.uses = 2;
	give(&terms);
	assert_int_equal(consent_look(&owner, skill, &f, &err), 0);
	assert_int_equal(consent_hold(&f, &plan, &err), 0);
	assert_int_equal(consent_use(&owner, &plan, &err), 0);
	assert_int_equal(look(), CONSENT_HOLDS);
	assert_int_equal(consent_use(&owner, &plan, &err), 0);
	assert_int_equal(look(), CONSENT_OVER);
	assert_int_equal(consent_use(&owner, &plan, &none), -1);
	assert_int_equal(none.code, SSB_E_POLICY);
	/* Approved anew for other bytes: not for this plan. */
	struct ssb_error other = { 0 };
	put("new", "");
	give(&terms);
	assert_int_equal(consent_use(&owner, &plan, &other), -1);
	plan_approval_free(plan.approved);
}

/* All at the same moment; how many had it. */
static int use_together(const char *tree)
{
	struct ssb_error err = { 0 };
	int won = 0;
	int gate[2];
	char none;

	assert_int_equal(pipe(gate), 0);
	for (int i = 0; i < PROCESSES; i++) {
		if (fork() == 0) {
			(void)close(gate[1]);
			_exit(read(gate[0], &none, 1) == 0 &&
			                      lock_use(&owner, skill, tree, &err) == 0
			              ? 0
			              : 1);
		}
	}
	(void)close(gate[0]);
	(void)close(gate[1]);
	for (int i = 0; i < PROCESSES; i++) {
		int status = 0;
		assert_true(wait(&status) > 0);
		won += status == 0;
	}
	return won;
}

static void once_among_many(void **state)
{
	(void)state;
	struct consent_terms terms = FOR_GOOD;
	struct ssb_error err = { 0 };
	char tree[DIGEST_TEXT];

	terms.uses = 1;
	for (int i = 0; i < 10; i++) {
		AUTO(lock_done) struct lock l = { 0 };
		give(&terms);
		assert_int_equal(lock_load(&owner, skill, &l, &err), 0);
		assert_int_equal(use_together(digest_text(l.files.tree, tree)), 1);
	}
}

/* Whoever changes the store is alone. */
static void one_at_a_time(void **state)
{
	(void)state;
	AUTO(lock_done) struct lock l = { 0 };
	struct consent_terms terms = FOR_GOOD;
	struct ssb_error err = { 0 };
	struct ssb_error held = { 0 };
	struct ssb_error fine = { 0 };
	char path[96];
	char tree[DIGEST_TEXT];

	terms.uses = 1;
	give(&terms);
	assert_int_equal(lock_load(&owner, skill, &l, &err), 0);
	(void)digest_text(l.files.tree, tree);
	snprintf(path, sizeof(path), "%s/approvals.lock", top);
	auto_fd fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(lock_use(&owner, skill, tree, &held), -1);
	assert_non_null(strstr(held.text, "approvals.lock"));
	own_close(&fd);
	assert_int_equal(lock_use(&owner, skill, tree, &fine), 0);
}

/* ---- what is none ---------------------------------------------------------------- */

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

/* Each exchanges one text of a good approval. */
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
	{ "\"at\": \"2", "\"at\": \"x" },
	{ "\"option\": \"read\"", "\"option\": \"policy\"" },
	{ "\"option\": \"read\"", "\"option\": 0" },
	{ "\"value\": \"~/.ssh\"", "\"value\": \"~/.s\\u0000h\"" },
	{ "\"value\": \"~/.ssh\"", "\"value\": null" },
	{ "\"snapshot\": true", "\"snapshot\": 1" },
	{ "\"tree\": \"sha256:", "\"tree\": \"sha512:" },
	{ "\"path\": \"SKILL.md\"", "\"path\": \"SKILL.mD\"" }, /* the tree knows */
	{ "\"path\": \"SKILL.md\"", "\"path\": \"../SKILL.md\"" },
	{ "\"path\": \"SKILL.md\"", "\"path\": \"/SKILL.md\"" },
	{ "\"path\": \"SKILL.md\"", "\"path\": null" },
	{ "\"mode\": \"0644\"", "\"mode\": \"0755\"" },
	{ "\"mode\": \"0644\"", "\"mode\": \"644\"" },
	{ "\"mode\": \"0644\"", "\"mode\": 420" },
	{ "\"size\": 7", "\"size\": -7" },
	{ "\"size\": 7", "\"size\": 99999999999999" },
	{ "\"size\": 7", "\"size\": 7, \"link\": \"x\"" },
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
	(void)state;
	auto_buf good, bad;

	give(&FOR_GOOD);
	read_good(&good);
	buf_init(&bad, MAX_LOCK_BYTES);
	for (size_t i = 0; i < ARRAY_LEN(SPOILED); i++) {
		/* The end of the text, where it is that which is spoiled. */
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
	(void)state;
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
	/* Another skill's, by the name of this one's; and a link to a good one. */
	snprintf(other, sizeof(other), "%s/other", top);
	assert_int_equal(rename(path, other), 0);
	assert_int_equal(symlink(other, path), 0);
	assert_int_equal(load_code(), SSB_E_SYS);
	char *there = strstr(good.data, "/skill\"");
	assert_non_null(there);
	memcpy(there, "/skilL\"", 7);
	write_lock(good.data, good.len, 0600);
	assert_int_equal(load_code(), SSB_E_POLICY);
	/* It is taken back all the same. */
	struct ssb_error err = { 0 };
	bool was = false;
	assert_int_equal(lock_remove(&owner, skill, &was, &err), 0);
	assert_true(was);
	assert_int_equal(load_code(), SSB_E_NOT_FOUND);
}

/* ---- bounds ---------------------------------------------------------------------- */

static struct lock lock_of(const char *named)
{
	static char words[][28] = { "n", "f", "2026-11-15T13:20:00.123456Z", "b" };
	struct lock l = { .skill = (char *)(uintptr_t)named,
		          .name = words[0],
		          .format = words[1],
		          .at = words[2],
		          .by = words[3],
		          .uses = -1 };

	pinned_tree(&l.files, l.files.tree);
	return l;
}

/* As lock_store() would, but for the disk. */
static void write_named(const char *named)
{
	struct lock l = lock_of(named);
	char path[256];
	auto_buf text;

	buf_init(&text, MAX_LOCK_BYTES);
	lock_write(&text, &l);
	path_of(named, path);
	auto_fd fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_int_equal(file_write_all(fd, text.data, text.len), 0);
}

static enum ssb_code store_code(const char *named)
{
	struct lock l = lock_of(named);
	struct ssb_error err = { 0 };

	return lock_store(&owner, &l, &err) == 0 ? SSB_OK : err.code;
}

static void bounds(void **state)
{
	(void)state;
	AUTO(lock_list_done) struct lock_list l = { 0 };
	AUTO(lock_list_done) struct lock_list past = { 0 };
	struct ssb_error err = { 0 };
	char name[32];

	assert_int_equal(store_code("/0"), SSB_OK);
	for (int i = 1; i < MAX_APPROVED - 1; i++) {
		snprintf(name, sizeof(name), "/%d", i);
		write_named(name);
	}
	assert_int_equal(store_code("/last"), SSB_OK);
	assert_int_equal(store_code("/past"), SSB_E_LIMIT);
	assert_int_equal(store_code("/0"), SSB_OK); /* in the place of one */
	assert_int_equal(lock_list(&owner, &l, &err), 0);
	assert_int_equal(l.n, MAX_APPROVED);
	assert_string_equal(l.v[0].skill, "/0");
	assert_string_equal(l.v[1].skill, "/1");
	assert_string_equal(l.v[2].skill, "/10");
	write_named("/past");
	assert_int_equal(lock_list(&owner, &past, &err), -1);
	assert_int_equal(err.code, SSB_E_LIMIT);
}

/* The longest word, and the longest file. */
static void bounds_of_one(void **state)
{
	(void)state;
	auto_free char *word = malloc(MAX_LOCK_TEXT + 2);
	struct lock l = lock_of("/long");
	struct ssb_error err = { 0 };
	struct ssb_error past = { 0 };
	auto_buf good;

	memset(word, 'x', MAX_LOCK_TEXT + 1);
	word[MAX_LOCK_TEXT + 1] = '\0';
	l.by = word;
	assert_int_equal(lock_store(&owner, &l, &past), -1);
	assert_int_equal(past.code, SSB_E_LIMIT);
	word[MAX_LOCK_TEXT] = '\0';
	assert_int_equal(lock_store(&owner, &l, &err), 0);
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

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(comes_back),
		T(states),
		T(expires_by_policy),
		T(is_applied),
		T(policy_goes_first),
		T(of_what_was_shown),
		T(used_up),
		T(some_at_a_time),
		T(once_among_many),
		T(one_at_a_time),
		T(not_understood),
		T(whose_it_is),
		T(bounds),
		T(bounds_of_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
