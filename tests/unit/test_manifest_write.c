/* test_manifest_write.c - writes manifests: every value is read back, and a comment stays a
 * comment. */
#include "manifest_world.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "base/own.h"
#include "manifest/write.h"

static void same_list(const struct mtext_list *a, const struct mtext_list *b)
{
	assert_int_equal(a->n, b->n);
	for (size_t i = 0; i < a->n; i++) {
		assert_string_equal(a->v[i].s, b->v[i].s);
	}
}

static void same(const struct manifest *a, const struct manifest *b)
{
	assert_string_equal(a->name, b->name);
	assert_string_equal(a->version, b->version);
	assert_string_equal(a->description, b->description);
	assert_string_equal(a->author, b->author);
	assert_int_equal(a->command.s == NULL, b->command.s == NULL);
	assert_string_equal(a->command.s != NULL ? a->command.s : "",
	                    b->command.s != NULL ? b->command.s : "");
	assert_string_equal(a->workdir, b->workdir);
	assert_int_equal(a->profile, b->profile);
	assert_memory_equal(&a->net, &b->net, sizeof(a->net));
	assert_memory_equal(&a->resources, &b->resources, sizeof(a->resources));
	same_list(&a->read, &b->read);
	same_list(&a->write, &b->write);
	same_list(&a->env, &b->env);
	same_list(&a->args, &b->args);
	assert_int_equal(a->n_egress, b->n_egress);
	for (size_t i = 0; i < a->n_egress; i++) {
		assert_string_equal(a->egress[i].domain.s, b->egress[i].domain.s);
		assert_int_equal(a->egress[i].protocol, b->egress[i].protocol);
		assert_int_equal(a->egress[i].n_ports, b->egress[i].n_ports);
		assert_memory_equal(a->egress[i].ports, b->egress[i].ports,
		                    a->egress[i].n_ports * sizeof(uint16_t));
	}
}

/* Writes a manifest with these notes, reads it again and compares the two. Returns the new text. */
static char *round_trip(const struct manifest *m, const struct write_notes *notes)
{
	auto_buf out = BUF(MAX_YAML_BYTES);

	manifest_write(&out, m, notes);
	assert_false(out.failed);
	struct manifest *again = parse(out.data);
	same(m, again);
	manifest_free(again);
	return buf_steal(&out);
}

static const char *const WHOLE[] = {
	HEAD "permissions: {}\n",
	"skill: {name: 'yes', version: '1.0', description: \"a: b # c\\nd\", author: \"x \"}\n"
	"entrypoint: {command: 'null', args: ['', ' a', '- b', '~', '\"', \"\\\\\", \"t\\tn\\n\",\n"
	"  'ü 漢', '#', '[', '{}', '*', '&a', '!x', '%', '@', '`', '1e3', '0x1', '---', 'a: b',\n"
	"  'true', '-', ':', '?', 'a #b', '.inf', '=', '<<']}\npermissions: {}\n",
	"skill: {name: s, version: 1}\nentrypoint: {command: sh, workdir: /skill/sub}\n"
	"permissions:\n  syscalls: {profile: strict}\n  env_vars: {allow: [A, LANG]}\n"
	"  filesystem: {read: [~/, '~/a b', /srv/x], write: ['/srv/\"q']}\n"
	"  network:\n    max_connections: 3\n    egress:\n    - {domain: '*.example.com', ports: "
	"[1, 65535]}\n"
	"    - {domain: 192.0.2.1, protocol: udp}\n    - {domain: '2001:db8::/64', protocol: "
	"http}\n"
	"resources: {memory_mb: 7, max_disk_mb: 9}\n",
	HEAD "permissions: {network: {max_bytes_in: 5}}\n",
	"skill: {name: s, version: '1'}\npermissions: {filesystem: {read: [~/x]}}\n",
	HEAD "permissions: {filesystem: {arguments: read}}\n",
	HEAD "permissions: {filesystem: {read: [/srv/a], arguments: write}}\n",
};

static void whole_manifests(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(WHOLE); i++) {
		struct manifest *m = parse(WHOLE[i]);
		free(round_trip(m, NULL));
		manifest_free(m);
	}
}

/* Hostile texts for comments: no part of them may become a real line of the manifest. */
static const char *const HOSTILE[] = {
	"x\npermissions: {}",
	"x\r\n  - /etc",
	"\xe2\x80\xa8  - /etc",
	"\xc2\x85  - /etc",
	"a\xff\xfe"
	"b",
	"\x1b[2K",
	"\xe2\x80\xae/cte",
	"\xef\xbb\xbf",
	"\xef\xbf\xbe",
	"# - ~/.ssh",
	"",
	"\x01\x02\x7f",
};

static void notes_stay_notes(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(HOSTILE); i++) {
		const char *h = HOSTILE[i];
		const char *why[] = { h, h };
		const struct write_aside asides[] = { { WRITE_EGRESS, h, h },
			                              { WRITE_READ, h, h },
			                              { WRITE_WRITE, h, h },
			                              { WRITE_ENV, h, h },
			                              { WRITE_OTHER, h, h } };
		struct write_notes notes = { .head = h,
			                     .why = { why, why, why, why },
			                     .asides = asides,
			                     .n_asides = ARRAY_LEN(asides) };
		/* once with empty lists, once with items */
		for (int k = 0; k < 2; k++) {
			struct manifest *m = parse(
			        k == 0 ? HEAD "permissions: {}\n"
			               : HEAD "permissions: {network: {egress: [{domain: a.org}, "
			                      "{domain: b.org}]}, filesystem: {read: [/srv/a], "
			                      "write: [/srv/b]}, env_vars: {allow: [A, B]}}\n");
			free(round_trip(m, &notes));
			manifest_free(m);
		}
	}
}

static void reasons_stand_behind_their_lines(void **state)
{
	const char *why[] = { "run 1" };
	const struct write_aside aside = { WRITE_READ, "~/.ssh", "it holds SSH keys" };
	struct write_notes notes = {
		.head = "two\nlines", .why = { NULL, why }, .asides = &aside, .n_asides = 1
	};
	struct manifest *m = parse(HEAD "permissions: {filesystem: {read: [~/a]}}\n");
	auto_free char *text = round_trip(m, &notes);

	assert_non_null(strstr(text, "# two\n# lines\nskill:\n"));
	assert_non_null(strstr(text, "    read:\n      - ~/a  # run 1\n"
	                             "      # - ~/.ssh  # it holds SSH keys\n"));
	manifest_free(m);
	m = parse(HEAD "permissions: {}\n");
	auto_free char *bare = round_trip(m, &notes);
	assert_non_null(strstr(bare, "permissions: {}\n  # filesystem:\n    # read:\n"
	                             "      # - ~/.ssh  # it holds SSH keys\n"));
	manifest_free(m);
}

static void what_cannot_be_said_fails(void **state)
{
	static const char *const BAD[] = { "/srv/\xff", "/srv/a\x01", "/srv/\xe2\x80\xae",
		                           "/srv/\xc2\x85" };
	assert_true(manifest_can_say("/srv/a \"b\" ü"));
	for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
		struct manifest *m = parse(HEAD "permissions: {filesystem: {read: [/srv/x]}}\n");
		auto_buf out = BUF(MAX_YAML_BYTES);
		free(m->read.v[0].s);
		m->read.v[0].s = strdup(BAD[i]);
		assert_false(manifest_can_say(BAD[i]));
		manifest_write(&out, m, NULL);
		assert_true(out.failed);
		manifest_free(m);
	}
}

static void the_longest_text(void **state)
{
	auto_free char *s = malloc(MAX_SCALAR_BYTES + 2);

	assert_non_null(s);
	memset(s, 'a', MAX_SCALAR_BYTES + 1);
	s[MAX_SCALAR_BYTES] = '\0';
	assert_true(manifest_can_say(s));
	s[MAX_SCALAR_BYTES] = 'a';
	s[MAX_SCALAR_BYTES + 1] = '\0';
	assert_false(manifest_can_say(s));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_manifests),
		cmocka_unit_test(notes_stay_notes),
		cmocka_unit_test(reasons_stand_behind_their_lines),
		cmocka_unit_test(what_cannot_be_said_fails),
		cmocka_unit_test(the_longest_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
