/* test_shrink.c - requests of a manifest that no run has used, and the patch that removes them. In
 * whatever style the manifest is written, patch(1) must be able to apply the patch. */
#include "manifest_world.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/own.h"
#include "learn/shrink.h"
#include "manifest/write.h"
#include "os/file.h"

/* Runs patch(1) in a new directory. Returns the patched manifest as new text. */
static char *applied(const char *text, const struct buf *patch)
{
	char dir[] = "/tmp/ssb-shrink-XXXXXX";
	char file[64], diff[64];
	int status = -1;
	auto_buf out;

	buf_init(&out, MAX_YAML_BYTES);
	assert_non_null(mkdtemp(dir));
	snprintf(file, sizeof(file), "%s/t.yaml", dir);
	snprintf(diff, sizeof(diff), "%s/diff", dir);
	auto_fd fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	auto_fd in = open(diff, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(file_write_all(fd, text, strlen(text)), 0);
	assert_int_equal(file_write_all(in, patch->data, patch->len), 0);
	pid_t pid = fork();
	if (pid == 0) {
		execl("/usr/bin/patch", "patch", "-p1", "-s", "-F0", "-d", dir, "-i", "diff",
		      (char *)NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status != 0) {
		fail_msg("patch: %d\n%s\n%s", status, patch->data, text);
	}
	auto_fd again = open(file, O_RDONLY | O_CLOEXEC);
	assert_int_equal(file_read_all(again, &out), 0);
	(void)unlink(file);
	(void)unlink(diff);
	(void)rmdir(dir);
	return buf_steal(&out);
}

static void add(struct needs *s, enum need_kind kind, const char *value, unsigned port)
{
	struct need n = { .kind = kind,
		          .value = (char *)(uintptr_t)value,
		          .port = (uint16_t)port,
		          .protocol = PROTO_TLS };

	assert_int_equal(needs_add(s, &n), 0);
}

/* Fills `s` with the needs that the runs of all cases have. */
static void used(struct needs *s)
{
	s->home = strdup("/home/u");
	add(s, NEED_NETWORK, "used.example", 443);
	add(s, NEED_NETWORK, "looked.example", 0);
	add(s, NEED_READ, "~/used/a", 0);
	add(s, NEED_WRITE, "/srv/used/a", 0);
	add(s, NEED_ARGUMENTS, "read", 0);
	add(s, NEED_ENV, "USED", 0);
	struct need absent = { .kind = NEED_ENV,
		               .value = (char *)(uintptr_t) "ABSENT",
		               .absent = true };
	assert_int_equal(needs_add(s, &absent), 0);
	struct need hint = { .kind = NEED_READ,
		             .value = (char *)(uintptr_t) "/srv/hint",
		             .hint = true };
	assert_int_equal(needs_add(s, &hint), 0);
}

static const struct {
	const char *text;
	size_t unused;
	/* a text in a line that the patch must not change; NULL: the style cannot be patched, so
	 * the manifest is written anew */
	const char *keeps;
} CASES[] = {
	{ HEAD "permissions: {}\n", 0, "" },
	{ HEAD "permissions: {filesystem: {arguments: read}}\n", 0, "" },
	{ HEAD "permissions: # note\n  filesystem: {read: [~/not], arguments: \"write\"}\n", 2,
	  "# note" },
	{ HEAD "# note\npermissions:\n  filesystem:\n    read:\n      - ~/used # a\n      - ~/not\n"
	       "    write: [/srv/used, /srv/not]\n  env_vars:\n    allow: [USED, ABSENT, NEVER]\n",
	  4, "# note" },
	{ HEAD "permissions:\n  filesystem:\n    read: # none\n      - ~/not\n      - /srv/hint\n"
	       "    write:\n    - /srv/not\n    - /srv/used\n",
	  3, "# none" },
	{ HEAD "permissions:\n  filesystem: {read: ['~/not', \"/srv/o\\\"dd, x\", ~/used ],\n"
	       "    write: [ /srv/not ]}\n",
	  3, "skill:" },
	{ HEAD "permissions:\n  network:\n    egress:\n      - domain: used.example\n"
	       "        ports: [80, 443]\n        protocol: tls # here\n      - protocol: tls\n"
	       "        # why\n        domain: not.example\n      - domain: looked.example\n"
	       "        ports: [1, 2]\n",
	  2, "# here" },
	{ HEAD "permissions:\n  network:\n    egress:\n    - {domain: not.example}\n"
	       "    max_connections: 4\n",
	  1, "max_connections: 4" },
	{ HEAD
	  "permissions: {network: {egress: [{domain: not.example}, {domain: used.example}]}}\n",
	  1, NULL },
	{ HEAD
	  "permissions:\n  network:\n    egress:\n      - domain: used.example\n        ports:\n"
	  "          - 80\n          - 443\n",
	  1, NULL },
	{ HEAD "permissions:\n  filesystem:\n    read: [\"/srv/\xc3\xbc\", ~/used, /srv/not]", 2,
	  "skill:" },
	{ HEAD "permissions:\n  env_vars:\n    allow:\n      - NEVER", 1, "skill:" },
	{ "skill: {name: s, version: '1'}\r\nentrypoint: {command: sh}\r\n"
	  "permissions:\r\n  env_vars:\r\n    allow: [NEVER, USED]\r\n",
	  1, "skill:" },
	{ HEAD
	  "permissions:\n  filesystem:\n    read:\n      - >-\n        /srv/not\n      - ~/used\n",
	  1, "- ~/used" },
};

static char *as_text(const struct manifest *m)
{
	auto_buf out;

	buf_init(&out, MAX_YAML_BYTES);
	manifest_write(&out, m, NULL);
	assert_false(out.failed);
	return buf_steal(&out);
}

/* If the patch removes a line that contains `line`, it must add a changed line that contains
 * `line`. */
static void check_kept(const char *patch, const char *line)
{
	for (const char *p = patch; (p = strchr(p, '\n')) != NULL && p[1] != '\0';) {
		p++;
		size_t n = strcspn(p, "\n");
		if (p[0] == '-' && memmem(p, n, line, strlen(line)) != NULL &&
		    memmem(patch, strlen(patch), "+", 1) != NULL) {
			/* the line was only changed: its comment stays */
			auto_free char *rest = strdup(p + n);
			assert_non_null(strstr(rest, line));
		}
	}
}

static void patches(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		struct needs seen = { 0 };
		struct shrink s = { 0 };
		struct manifest *m = parse(CASES[i].text);
		auto_buf patch;
		buf_init(&patch, 1 << 20);
		used(&seen);
		assert_int_equal(shrink_find(m, &seen, &s), 0);
		if (s.n != CASES[i].unused) {
			fail_msg("%zu unused of\n%s", s.n, CASES[i].text);
		}
		if (s.n > 0) {
			assert_int_equal(shrink_patch(m, &s, "t.yaml", CASES[i].text,
			                              strlen(CASES[i].text), &patch),
			                 0);
			auto_free char *after = applied(CASES[i].text, &patch);
			struct manifest *left = parse(after);
			auto_free char *got = as_text(left);
			auto_free char *wanted = as_text(&s.rest);
			assert_string_equal(got, wanted);
			bool anew = strstr(patch.data, "\n-skill:") != NULL;
			if (anew != (CASES[i].keeps == NULL)) {
				fail_msg("%s\n%s", anew ? "written anew" : "cut", patch.data);
			}
			if (CASES[i].keeps != NULL) {
				assert_non_null(strstr(after, CASES[i].keeps));
				check_kept(patch.data, CASES[i].keeps);
			}
			/* The patched manifest must have no unused request. */
			struct shrink none = { 0 };
			assert_int_equal(shrink_find(left, &seen, &none), 0);
			assert_int_equal(none.n, 0);
			shrink_done(&none);
			manifest_free(left);
		}
		shrink_done(&s);
		manifest_free(m);
		needs_done(&seen);
	}
}

/* A long manifest, whose patch has many hunks. */
static void far_apart(void **state)
{
	struct needs seen = { 0 };
	struct shrink s = { 0 };
	auto_buf text, patch;

	buf_init(&text, MAX_YAML_BYTES);
	buf_init(&patch, 1 << 20);
	used(&seen);
	buf_adds(&text, HEAD "permissions:\n  filesystem:\n    read:\n");
	for (int i = 0; i < MAX_LIST_ITEMS; i++) {
		buf_addf(&text, "      - %s/%d\n", i % 11 == 0 ? "/srv/not" : "/home/u/used", i);
		char used_one[64];
		snprintf(used_one, sizeof(used_one), "~/used/%d", i);
		add(&seen, NEED_READ, used_one, 0);
	}
	struct manifest *m = parse(text.data);
	assert_int_equal(shrink_find(m, &seen, &s), 0);
	assert_int_equal(s.n, (MAX_LIST_ITEMS + 10) / 11);
	assert_int_equal(shrink_patch(m, &s, "t.yaml", text.data, text.len, &patch), 0);
	auto_free char *after = applied(text.data, &patch);
	assert_null(strstr(after, "/srv/not"));
	struct manifest *left = parse(after);
	assert_int_equal(left->read.n, MAX_LIST_ITEMS - s.n);
	manifest_free(left);
	shrink_done(&s);
	manifest_free(m);
	needs_done(&seen);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(patches),
		                            cmocka_unit_test(far_apart) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
