/* test_needs.c - the needs of a run, read from its record. */
#include "plan_world.h"

#include <sys/mman.h>

#include "base/buf.h"
#include "learn/needs.h"
#include "os/file.h"

#define LINE(seq, kind, rest) "{\"seq\":" seq ",\"time\":\"t\",\"kind\":\"" kind "\"," rest "}\n"
#define EVENT(kind, data)     LINE("7", kind, "\"data\":{" data "}")
#define DENIED(kind, data)    LINE("7", kind, "\"violation\":true,\"data\":{" data "}")
#define GRANT(path, origin)   "{\"target\":\"" path "\",\"origin\":\"" origin "\"}"

static const char *run_home; /* the home in the record; NULL: the owner's home */

/* Writes the first line of the record. */
static void put_run(struct buf *out)
{
	buf_addf(
	        out,
	        "{\"seq\":0,\"time\":\"t\",\"kind\":\"run\",\"plan\":{\"home\":\"%s\","
	        "\"requested\":[\"environment LANG\"],\"granted\":{\"files\":[" GRANT(
	                "/skill",
	                "skill") "," GRANT("/opt/tool",
	                                   "toolchain") "," GRANT("/srv/in",
	                                                          "manifest") "," GRANT("%s/notes/"
	                                                                                "deep",
	                                                                                "flag") "]}"
	                                                                                        "}}"
	                                                                                        "\n",
	        run_home != NULL ? run_home : home, home);
}

/* Reads a record that consists of the first line and `lines`. The caller checks the errors. */
static int read_lines(const char *lines, struct needs *s, struct ssb_error *err)
{
	auto_fd fd = memfd_create("record", MFD_CLOEXEC);
	auto_buf text;

	buf_init(&text, 64UL << 20);
	put_run(&text);
	buf_adds(&text, lines);
	assert_true(fd >= 0 && !text.failed);
	assert_int_equal(file_write_all(fd, text.data, text.len), 0);
	return needs_from_record(&owner, fd, "run 1", s, err);
}

static char *list(const struct needs *s)
{
	auto_buf out;

	buf_init(&out, 1 << 20);
	buf_adds(&out, "");
	for (size_t i = 0; i < s->n; i++) {
		const struct need *n = &s->v[i];
		buf_addf(&out, "%s%s%s", i > 0 ? ", " : "", n->danger != NULL ? "!" : "",
		         n->denied   ? "no "
		         : n->absent ? "absent "
		                     : "");
		need_text(&out, n);
		if (n->count > 1) {
			buf_addf(&out, " x%llu", (unsigned long long)n->count);
		}
	}
	return out.len > 0 ? buf_steal(&out) : strdup("");
}

#define READ "\"op\":\"open\",\"mode\":\"read\",\"status\":"
#define HOST(name)                                                                                 \
	EVENT("network_egress_allowed", "\"name\":\"" name "\",\"port\":443,"                      \
	                                "\"protocol\":\"tls\",\"reason\":\"ok\"")
#define AIMED                                                                                      \
	"\"op\":\"connect\",\"name\":\"a.example\",\"port\":9,\"protocol\":\"udp\","               \
	"\"reason\":\"undeclared_port\""
#define CREATE "\"op\":\"open\",\"mode\":\"create\",\"status\":"

/* In the lines, "@" is the home. The files of the home are those of plan_world.h. */
static const struct {
	const char *lines;
	const char *found;
} CASES[] = {
	/* files that every sandbox shows, and the skill's own files */
	{ EVENT("file_read", READ "\"asked\",\"path\":\"/usr/lib/x\",\"rule\":\"system\""), "" },
	{ EVENT("file_read", READ "\"asked\",\"path\":\"/skill/x\",\"rule\":\"skill\""), "" },
	{ EVENT("file_read", READ "\"asked\",\"path\":\"/opt/tool/x\",\"rule\":\"toolchain\""),
	  "" },
	{ EVENT("file_write", CREATE "\"asked\",\"path\":\"/tmp/x\",\"rule\":\"private\""), "" },
	{ EVENT("file_write", CREATE "\"asked\",\"path\":\"@/x\",\"rule\":\"private\""), "" },
	{ EVENT("file_read", READ "\"absent\",\"path\":\"/etc/x\",\"rule\":\"system\""), "" },
	/* granted files that were used */
	{ EVENT("file_read", READ "\"asked\",\"path\":\"/srv/in/x\",\"rule\":\"m:1:1\""),
	  "read /srv/in/x" },
	{ EVENT("file_read", READ "\"absent\",\"path\":\"/srv/in/x\",\"rule\":\"m:1:1\""),
	  "read /srv/in/x" },
	{ EVENT("file_write", CREATE "\"asked\",\"path\":\"/srv/in/d/x\",\"rule\":\"m:1:1\""),
	  "write /srv/in/d" },
	{ EVENT("file_write",
	        "\"op\":\"rename\",\"path\":\"/srv/in/a/x\",\"path2\":\"/srv/in/b/y\","
	        "\"rule\":\"m\""),
	  "write /srv/in/a, write /srv/in/b" },
	{ EVENT("file_read", READ "\"asked\",\"path\":\"@/notes/deep/a\",\"rule\":\"--read\""),
	  "read ~/notes/deep/a" },
	/* names that the sandbox hides: files of the owner, and settings for which tools look */
	{ EVENT("file_blocked", READ "\"denied\",\"path\":\"@/notes\",\"reason\":\"not_granted\""),
	  "no read ~/notes" },
	{ EVENT("file_blocked", READ "\"denied\",\"path\":\"/srv/x\",\"reason\":\"not_granted\""),
	  "no read /srv/x" },
	{ EVENT("file_read", READ "\"absent\",\"path\":\"@/missing\",\"rule\":\"private\""), "" },
	{ EVENT("file_blocked",
	        READ "\"denied\",\"path\":\"@/.config\",\"reason\":\"not_granted\""),
	  "" },
	{ EVENT("file_blocked", READ "\"denied\",\"path\":\"/etc/x\",\"reason\":\"not_granted\""),
	  "" },
	/* refused */
	{ DENIED("file_blocked",
	         READ "\"denied\",\"path\":\"/srv/u/k\",\"reason\":\"credential_store\""),
	  "!no read /srv/u/k" }, /* the home in the record is another one */
	{ DENIED("file_blocked",
	         READ "\"denied\",\"path\":\"/srv/x/y\",\"reason\":\"outside_plan\""),
	  "no read /srv/x/y" },
	{ DENIED("file_blocked",
	         READ "\"denied\",\"path\":\"@/.ssh/id\",\"reason\":\"credential_store\""),
	  "!no read ~/.ssh/id" },
	{ DENIED("file_blocked",
	         READ "\"denied\",\"path\":\"@/.ssh/id\",\"reason\":\"outside_plan\""),
	  "!no read ~/.ssh/id" },
	{ DENIED("file_blocked",
	         CREATE "\"denied\",\"path\":\"/srv/x/y\",\"reason\":\"outside_plan\""),
	  "no write /srv/x" },
	{ DENIED("file_blocked",
	         CREATE "\"denied\",\"path\":\"/srv/y\",\"reason\":\"outside_plan\""),
	  "!no write /srv" },
	{ DENIED("file_blocked",
	         CREATE "\"denied\",\"path\":\"/skill/y\",\"reason\":\"read_only\""),
	  "!no write /skill" },
	{ DENIED("file_blocked",
	         READ "\"denied\",\"path\":\"/proc/1/mem\",\"reason\":\"other_process\""),
	  "!no read /proc/1/mem" },
	{ EVENT("file_blocked",
	        CREATE "\"denied\",\"path\":\"/skill/x.pyc\",\"reason\":\"read_only\""),
	  "" },
	{ DENIED("file_blocked",
	         READ "\"denied\",\"path\":\"/srv/a\\nb\",\"reason\":\"outside_plan\""),
	  "!no read /srv/a\\nb" },
	{ DENIED("file_blocked",
	         READ "\"denied\",\"path\":\"/srv/\\udcff\",\"reason\":\"outside_plan\""),
	  "!no read /srv/\\xff" },
	{ DENIED("file_blocked",
	         READ "\"denied\",\"path\":\"/srv/a\\u0000b\",\"reason\":\"outside_plan\""),
	  "" },
	/* hosts */
	{ DENIED("network_egress_blocked",
	         "\"op\":\"resolve\",\"name\":\"X.example.com\",\"port\":53,"
	         "\"protocol\":\"dns\",\"reason\":\"not_declared\""),
	  "no connect to x.example.com" },
	{ EVENT("network_egress_allowed",
	        "\"name\":\"a.example\",\"port\":443,\"protocol\":\"tls\","
	        "\"reason\":\"ok\""),
	  "connect to a.example:443 (tls)" },
	{ EVENT("network_egress_blocked",
	        "\"name\":\"a.example\",\"port\":443,\"protocol\":\"tls\","
	        "\"reason\":\"no_name\",\"address_asked\":\"198.18.1.1\"")
	          DENIED("network_egress_blocked",
	                 "\"address\":\"198.18.1.1\",\"port\":8080,"
	                 "\"protocol\":\"tcp\",\"reason\":\"undeclared_port\""),
	  "connect to a.example:443 (tls), no connect to a.example:8080 (tcp)" },
	{ DENIED("network_egress_blocked",
	         "\"address\":\"203.0.113.1\",\"port\":9,\"protocol\":\"udp\","
	         "\"reason\":\"undeclared_address\""),
	  "!no connect to 203.0.113.1:9 (udp)" },
	/* getaddrinfo() connects a UDP socket only to sort addresses: if a TCP attempt follows,
	 * this does not count as a need for UDP; otherwise it does */
	{ EVENT("network_egress_blocked", AIMED) DENIED(
	          "network_egress_blocked", "\"name\":\"a.example\",\"port\":9,"
	                                    "\"protocol\":\"tcp\",\"reason\":\"undeclared_port\""),
	  "no connect to a.example:9 (tcp)" },
	{ EVENT("network_egress_blocked", AIMED), "no connect to a.example:9 (udp)" },
	{ EVENT("network_egress_blocked", AIMED) DENIED(
	          "network_egress_blocked", "\"name\":\"a.example\",\"port\":9,"
	                                    "\"protocol\":\"tcp\",\"reason\":\"undeclared_port\"")
	          DENIED("network_egress_blocked",
	                 "\"op\":\"send\",\"name\":\"a.example\",\"port\":9,"
	                 "\"protocol\":\"udp\",\"reason\":\"undeclared_port\""),
	  "no connect to a.example:9 (tcp), no connect to a.example:9 (udp) x2" },
	{ DENIED("network_egress_blocked",
	         "\"name\":\"a.example\",\"port\":443,\"protocol\":\"tls\","
	         "\"reason\":\"guarded\""),
	  "!no connect to a.example:443 (tls)" },
	{ DENIED("network_egress_blocked",
	         "\"name\":\"a.example\",\"port\":25,\"protocol\":\"tls\","
	         "\"reason\":\"not_tls\""),
	  "no connect to a.example:25 (tcp)" },
	/* one of two attempts sent a decoy */
	{ DENIED("network_egress_blocked", "\"name\":\"a.example\",\"port\":25,"
	                                   "\"protocol\":\"tcp\",\"reason\":\"canary\"")
	          EVENT("network_egress_blocked", "\"name\":\"a.example\",\"port\":25,"
	                                          "\"protocol\":\"tcp\",\"reason\":\"learning\""),
	  "!no connect to a.example:25 (tcp) x2" },
	/* names that mean a different host in each network; then names that only look similar */
	{ HOST("localhost"), "!connect to localhost:443 (tls)" },
	{ HOST("com"), "!connect to com:443 (tls)" },
	{ HOST("vm"), "!connect to vm:443 (tls)" },
	{ HOST("Router.LOCAL"), "!connect to router.local:443 (tls)" },
	{ HOST("metadata.google.internal"), "!connect to metadata.google.internal:443 (tls)" },
	{ HOST("nas.home.arpa"), "!connect to nas.home.arpa:443 (tls)" },
	{ HOST("a.localhost"), "!connect to a.localhost:443 (tls)" },
	{ HOST("abc.onion"), "!connect to abc.onion:443 (tls)" },
	{ HOST("wiki.corp"), "!connect to wiki.corp:443 (tls)" },
	{ HOST("local.example.com"), "connect to local.example.com:443 (tls)" },
	{ HOST("a.notlocal"), "connect to a.notlocal:443 (tls)" },
	{ HOST("internal.com"), "connect to internal.com:443 (tls)" },
	/* variables */
	{ EVENT("env_var_access",
	        "\"granted\":[\"HOME\",\"PATH\",\"LANG\",\"KEY_A\",\"GITHUB_TOKEN\","
	        "\"MY_PASSWORD\",\"TOWN_API_KEY\"],\"absent\":[\"GONE\"]"),
	  "!environment GITHUB_TOKEN, absent environment GONE, environment KEY_A, environment "
	  "LANG, "
	  "!environment MY_PASSWORD, environment TOWN_API_KEY" },
	/* programs and system calls */
	{ EVENT("process_spawned", "\"op\":\"exec\",\"status\":\"fact\",\"path\":\"/srv/in/tool\""),
	  "read /srv/in/tool, run /srv/in/tool" },
	{ DENIED("syscall_blocked", "\"op\":\"ptrace\",\"reason\":\"attack\""), "!no call ptrace" },
	{ EVENT("syscall_blocked", "\"op\":\"socket\",\"reason\":\"profile\""), "" },
	/* repeats of a line */
	{ EVENT("file_read", READ "\"asked\",\"path\":\"/srv/in/x\",\"rule\":\"m:1:1\"")
	          LINE("8", "file_read", "\"repeat_of\":7,\"count\":4")
	                  LINE("9", "file_read", "\"repeat_of\":7,\"count\":5"),
	  "read /srv/in/x x10" },
	/* a line with a count: with "first", the count includes an attempt that has its own line,
	 * too */
	{ EVENT("file_read",
	        READ "\"asked\",\"path\":\"/srv/in/x\",\"rule\":\"m:1:1\",\"count\":5"),
	  "read /srv/in/x x5" },
	{ EVENT("file_read", READ "\"asked\",\"path\":\"/srv/in/x\",\"rule\":\"m:1:1\","
	                          "\"count\":5,\"first\":\"t\""),
	  "read /srv/in/x x4" },
};

static char *at_home(const char *text)
{
	auto_buf out;

	buf_init(&out, 1 << 20);
	for (; *text != '\0'; text++) {
		if (*text == '@') {
			buf_adds(&out, home);
		} else {
			buf_addc(&out, *text);
		}
	}
	return buf_steal(&out);
}

static void records(void **state)
{
	policy(NULL);
	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		struct needs s = { 0 };
		struct ssb_error err = { 0 };
		auto_free char *lines = at_home(CASES[i].lines);
		if (read_lines(lines, &s, &err) != 0) {
			fail_msg("%s", err.text);
		}
		auto_free char *found = list(&s);
		if (strcmp(found, CASES[i].found) != 0) {
			fail_msg("%s\n  found: %s\n  not:   %s", lines, found, CASES[i].found);
		}
		needs_done(&s);
	}
}

/* A place that the policy file grants is not dangerous. A place that it denies is. */
static void as_the_plan_would(void **state)
{
	static const char *const TEXTS[] = { NULL, "grants: {read: [~/.ssh]}\n",
		                             "deny: {read: [/srv]}\n" };
	static const char *const FOUND[] = { "no read /srv/x/y, !no read ~/.ssh/id",
		                             "no read /srv/x/y, no read ~/.ssh/id",
		                             "!no read /srv/x/y, !no read ~/.ssh/id" };

	for (size_t i = 0; i < ARRAY_LEN(TEXTS); i++) {
		struct needs s = { 0 };
		struct ssb_error err = { 0 };
		auto_free char *lines = at_home(
		        DENIED("file_blocked", READ "\"denied\",\"path\":\"@/.ssh/id\","
		                                    "\"reason\":\"outside_plan\"")
		                DENIED("file_blocked", READ "\"denied\",\"path\":\"/srv/x/y\","
		                                            "\"reason\":\"outside_plan\""));
		policy(TEXTS[i]);
		if (read_lines(lines, &s, &err) != 0) {
			fail_msg("%s", err.text);
		}
		auto_free char *found = list(&s);
		assert_string_equal(found, FOUND[i]);
		needs_done(&s);
	}
	policy(NULL);
}

static void make_files(const char *dir, size_t n)
{
	(void)mkdir(at(dir), 0755);
	for (size_t i = 0; i < n; i++) {
		char name[64];
		snprintf(name, sizeof(name), "%s/f%03zu", dir, i);
		write_file(at(name), "", 0644);
	}
}

/* A whole directory may be proposed instead of its files ("small") if the run asked for at least
 * PROPOSE_SIBLINGS of its files, if it has at most PROPOSE_EXCESS times as many other files, and if
 * a plan would not refuse it. */
static void weighed(void **state)
{
	static const struct {
		const char *dir; /* the directory, in the home */
		const char *policy;
		size_t files;
		size_t asked;
		bool small;
	} DIRECTORIES[] = {
		{ "w8", NULL, 8, 8, true },
		{ "w7", NULL, 7, 7, false },
		{ "w12", NULL, 8, 12, true }, /* only files that exist count */
		{ "w1", NULL, 1, 12, false },
		{ "w64", NULL, 8 * PROPOSE_EXCESS, 8, true },
		{ "w65", NULL, 8 * PROPOSE_EXCESS + 1, 8, false },
		{ "wdeny", "deny: {read: [~/wdeny/f007]}\n", 8, 7, false },
		{ "wdeny2", "deny: {read: [~/wdeny2/f008]}\n", 9, 8, false },
		{ "wfree", "deny: {read: [~/wdeny2/f008]}\n", 9, 8, true },
	};

	for (size_t i = 0; i < ARRAY_LEN(DIRECTORIES); i++) {
		struct needs s = { 0 };
		struct ssb_error err = { 0 };
		char dir[32];
		snprintf(dir, sizeof(dir), "u/%s", DIRECTORIES[i].dir);
		make_files(dir, DIRECTORIES[i].files);
		policy(DIRECTORIES[i].policy);
		for (size_t k = 0; k < DIRECTORIES[i].asked; k++) {
			char path[64];
			snprintf(path, sizeof(path), "~/%s/f%03zu", DIRECTORIES[i].dir, k);
			struct need n = { .kind = NEED_READ, .value = path };
			assert_int_equal(needs_add(&s, &n), 0);
		}
		assert_int_equal(needs_weigh(&owner, NULL, &s, &err), 0);
		for (size_t k = 0; k < s.n; k++) {
			if (s.v[k].missing != (k >= DIRECTORIES[i].files) ||
			    s.v[k].in_small_dir !=
			            (DIRECTORIES[i].small && k < DIRECTORIES[i].files)) {
				fail_msg("%s: %d %d", s.v[k].value, s.v[k].missing,
				         s.v[k].in_small_dir);
			}
		}
		needs_done(&s);
	}
	policy(NULL);
}

static void damaged(void **state)
{
	static const char *const LINES[] = { "{\"seq\":1\n", "x\n", "{}\n" };

	for (size_t i = 0; i < ARRAY_LEN(LINES); i++) {
		struct needs s = { 0 };
		struct ssb_error err = { 0 };
		assert_int_equal(read_lines(LINES[i], &s, &err), -1);
		assert_non_null(strstr(err.text, "line 2 is not a record"));
		needs_done(&s);
	}
}

/* All lines are valid, but the first one is not that of a run. */
static void no_run(void **state)
{
	static const char line[] = EVENT("x", "\"name\":\"a\"");
	auto_fd fd = memfd_create("record", MFD_CLOEXEC);
	struct needs s = { 0 };
	struct ssb_error err = { 0 };

	assert_int_equal(file_write_all(fd, line, strlen(line)), 0);
	assert_int_equal(needs_from_record(&owner, fd, "run 1", &s, &err), -1);
	assert_non_null(strstr(err.text, "this is not the record of a run"));
	needs_done(&s);
}

/* As many addresses and repeats as can be stored; with one more, the result is marked as cut. */
static void names_and_repeats(void **state)
{
	for (int past = 0; past < 2; past++) {
		struct needs s = { 0 };
		struct ssb_error err = { 0 };
		auto_buf text;
		buf_init(&text, 64UL << 20);
		for (int i = 0; i < MAX_NEED_NAMES + past; i++) {
			buf_addf(&text,
			         EVENT("x", "\"name\":\"a\",\"address_asked\":\"198.18.%d.%d\""),
			         i / 256, i % 256);
		}
		assert_int_equal(read_lines(text.data, &s, &err), 0);
		assert_int_equal(s.cut, past);
		needs_done(&s);
		buf_reset(&text);
		for (int i = 0; i < MAX_NEED_REPEATS + past; i++) {
			buf_addf(&text, LINE("8", "x", "\"repeat_of\":%d,\"count\":1"), i);
		}
		assert_int_equal(read_lines(text.data, &s, &err), 0);
		assert_int_equal(s.cut, past);
		needs_done(&s);
	}
}

/* fd 0 is a valid fd: needs_judge() must not close it when it frees an unused plan. */
static void stdin_is_left_alone(void **state)
{
	struct needs s = { 0 };
	struct ssb_error err = { 0 };
	struct stat before, after;
	auto_fd mine = memfd_create("stdin", MFD_CLOEXEC);
	auto_fd kept = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);

	assert_true(mine >= 0 && dup2(mine, STDIN_FILENO) == STDIN_FILENO);
	assert_int_equal(fstat(STDIN_FILENO, &before), 0);
	assert_int_equal(
	        needs_add(&s, &(struct need){ .kind = NEED_READ, .value = (char[]){ "/srv/x" } }),
	        0);
	assert_int_equal(needs_judge(&owner, NULL, &s, &err), 0);
	assert_int_equal(fstat(STDIN_FILENO, &after), 0);
	assert_true(before.st_dev == after.st_dev && before.st_ino == after.st_ino);
	needs_done(&s);
	assert_true(kept < 0 ? close(STDIN_FILENO) == 0 : dup2(kept, STDIN_FILENO) == 0);
}

/* If the home in the record is not a path, the owner's home is used instead. */
static void home_of_a_record(void **state)
{
	auto_free char *lines = at_home(EVENT(
	        "file_read", READ "\"asked\",\"path\":\"@/notes/deep/a\",\"rule\":\"--read\""));

	policy(NULL);
	for (int i = 0; i < 2; i++) {
		struct needs s = { 0 };
		struct ssb_error err = { 0 };
		run_home = i == 0 ? "relative" : "/srv/other";
		assert_int_equal(read_lines(lines, &s, &err), 0);
		run_home = NULL;
		auto_free char *found = list(&s);
		assert_int_equal(strcmp(found, "read ~/notes/deep/a") == 0, i == 0);
		needs_done(&s);
	}
}

/* If lines of the record are missing, the result is marked as cut. */
static void dropped(void **state)
{
	for (int n = 0; n < 2; n++) {
		struct needs s = { 0 };
		struct ssb_error err = { 0 };
		assert_int_equal(
		        read_lines(n == 0 ? LINE("9", "end", "\"counters\":{\"dropped\":0}")
		                          : LINE("9", "end", "\"counters\":{\"dropped\":1}"),
		                   &s, &err),
		        0);
		assert_int_equal(s.cut, n);
		needs_done(&s);
	}
}

/* A path of the maximum length is read; a longer one is ignored. */
static void long_paths(void **state)
{
	for (size_t past = 0; past < 2; past++) {
		struct needs s = { 0 };
		struct ssb_error err = { 0 };
		auto_buf text;
		buf_init(&text, 1 << 20);
		buf_adds(&text, "{\"seq\":7,\"time\":\"t\",\"kind\":\"file_read\",\"data\":{" READ
		                "\"asked\",\"rule\":\"m:1:1\",\"path\":\"/srv/in/");
		for (size_t i = strlen("/srv/in/"); i < MAX_PATH_BYTES - 1 + past; i++) {
			buf_addc(&text, 'x');
		}
		buf_adds(&text, "\"}}\n");
		assert_int_equal(read_lines(text.data, &s, &err), 0);
		assert_int_equal(s.n, 1 - past);
		needs_done(&s);
	}
}

/* Two needs for the same file are merged, in either order: an attempt replaces a hint, and an
 * existing file replaces a missing one. */
static void taken_together(void **state)
{
	const struct need hint = { .kind = NEED_READ,
		                   .value = (char[]){ "/a" },
		                   .why = (char[]){ "a hint" },
		                   .danger = "a danger",
		                   .hint = true,
		                   .missing = true,
		                   .absent = true };
	const struct need tried = { .kind = NEED_READ,
		                    .value = (char[]){ "/a" },
		                    .why = (char[]){ "a run" },
		                    .denied = true,
		                    .in_small_dir = true,
		                    .count = 4 };

	for (int turned = 0; turned < 2; turned++) {
		struct needs s = { 0 };
		assert_int_equal(needs_add(&s, turned ? &tried : &hint), 0);
		assert_int_equal(needs_add(&s, turned ? &hint : &tried), 0);
		assert_int_equal(s.n, 1);
		const struct need *n = &s.v[0];
		assert_true(n->denied && n->in_small_dir);
		assert_false(n->hint || n->missing || n->absent);
		assert_int_equal(n->count, 5);
		assert_string_equal(n->why, "a run");
		assert_null(n->danger);
		needs_done(&s);
	}
}

/* When two needs for the same system call are merged, the wider profile is kept. -1 means that no
 * profile allows the call, and wins. */
static void profiles_together(void **state)
{
	static const int EACH[][3] = { { 0, 2, 2 }, { 2, 0, 2 }, { 1, -1, -1 }, { -1, 1, -1 } };

	for (size_t i = 0; i < ARRAY_LEN(EACH); i++) {
		struct needs s = { 0 };
		for (int k = 0; k < 2; k++) {
			const struct need n = { .kind = NEED_SYSCALL,
				                .value = (char[]){ "bpf" },
				                .profile = EACH[i][k] };
			assert_int_equal(needs_add(&s, &n), 0);
		}
		assert_int_equal(s.v[0].profile, EACH[i][2]);
		needs_done(&s);
	}
}

/* Needs that differ in any part are not merged. */
static void apart(void **state)
{
	const struct need all[] = {
		{ .kind = NEED_NETWORK, .value = (char[]){ "a" }, .port = 1 },
		{ .kind = NEED_NETWORK,
		  .value = (char[]){ "a" },
		  .port = 1,
		  .protocol = PROTO_UDP },
		{ .kind = NEED_NETWORK, .value = (char[]){ "a" }, .port = 2 },
		{ .kind = NEED_NETWORK, .value = (char[]){ "b" }, .port = 1 },
		{ .kind = NEED_ENV, .value = (char[]){ "a" } },
	};
	struct needs s = { 0 };

	for (size_t i = 0; i < 2 * ARRAY_LEN(all); i++) {
		assert_int_equal(needs_add(&s, &all[(i * 3) % ARRAY_LEN(all)]), 0);
	}
	assert_int_equal(s.n, ARRAY_LEN(all));
	for (size_t i = 0; i < s.n; i++) {
		assert_true(s.v[i].kind == all[i].kind && s.v[i].port == all[i].port);
		assert_int_equal(s.v[i].count, 2);
	}
	needs_done(&s);
}

/* At most MAX_NEEDS needs are stored. A further one only sets `cut`. Repeats of stored needs still
 * count. */
static void bounded(void **state)
{
	struct needs s = { 0 };
	char name[16];

	for (int i = 0; i <= MAX_NEEDS; i++) {
		snprintf(name, sizeof(name), "V%d", i % MAX_NEEDS);
		assert_int_equal(needs_add(&s, &(struct need){ .kind = NEED_ENV, .value = name }),
		                 0);
	}
	assert_true(s.n == MAX_NEEDS && !s.cut);
	assert_int_equal(
	        needs_add(&s, &(struct need){ .kind = NEED_ENV, .value = (char[]){ "W" } }), 0);
	assert_true(s.n == MAX_NEEDS && s.cut);
	needs_done(&s);
}

/* A directory with programs that the owner executes is dangerous to write, but not to read. */
static void judged_by_what_is_done(void **state)
{
	const struct {
		struct need n;
		bool danger;
	} EACH[] = {
		{ { .kind = NEED_READ, .value = (char[]){ "~/bin" } }, false },
		{ { .kind = NEED_WRITE, .value = (char[]){ "~/bin" } }, true },
		{ { .kind = NEED_READ, .value = (char[]){ "~/.local/x" } }, true },
		{ { .kind = NEED_ENV, .value = (char[]){ "A_B" } }, false },
		{ { .kind = NEED_ENV, .value = (char[]){ "A B" } }, true },
	};

	policy(NULL);
	for (size_t i = 0; i < ARRAY_LEN(EACH); i++) {
		struct needs s = { 0 };
		struct ssb_error err = { 0 };
		assert_int_equal(needs_add(&s, &EACH[i].n), 0);
		assert_int_equal(needs_judge(&owner, NULL, &s, &err), 0);
		assert_int_equal(s.v[0].danger != NULL, EACH[i].danger);
		needs_done(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records),
		cmocka_unit_test(as_the_plan_would),
		cmocka_unit_test(weighed),
		cmocka_unit_test(damaged),
		cmocka_unit_test(names_and_repeats),
		cmocka_unit_test(stdin_is_left_alone),
		cmocka_unit_test(no_run),
		cmocka_unit_test(home_of_a_record),
		cmocka_unit_test(dropped),
		cmocka_unit_test(long_paths),
		cmocka_unit_test(taken_together),
		cmocka_unit_test(profiles_together),
		cmocka_unit_test(apart),
		cmocka_unit_test(bounded),
		cmocka_unit_test(judged_by_what_is_done),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
