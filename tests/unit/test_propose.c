/* test_propose.c - the smallest manifest: valid, complete, without unnecessary lines, and with
 * dangerous requests only in comments. */
#include "manifest_world.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "base/own.h"
#include "learn/propose.h"

static void add(struct needs *s, enum need_kind kind, const char *value, unsigned port,
                enum protocol protocol, const char *danger)
{
	struct need n = { .kind = kind,
		          .value = (char *)(uintptr_t)value,
		          .port = (uint16_t)port,
		          .protocol = protocol,
		          .why = (char *)(uintptr_t) "run 1",
		          .in_small_dir = true,
		          .danger = danger };

	assert_int_equal(needs_add(s, &n), 0);
}

static char *propose(const char *base, const struct needs *s)
{
	struct manifest *b = parse(base);
	auto_buf out;

	buf_init(&out, MAX_YAML_BYTES);
	assert_int_equal(propose_manifest(b, s, NULL, &out), 0);
	manifest_free(b);
	return buf_steal(&out);
}

/* Returns the number of needs that the manifest `m` does not cover, without dangerous needs. */
static size_t open_needs(const struct manifest *m, const struct needs *s)
{
	size_t *v = NULL;
	size_t n = 0;
	size_t found = 0;

	assert_int_equal(propose_uncovered(m, s, &v, &n), 0);
	for (size_t i = 0; i < n; i++) {
		found += s->v[v[i]].danger == NULL;
	}
	free(v);
	return found;
}

static void drop(struct mtext_list *l, size_t at, const struct manifest *m, const struct needs *s)
{
	struct mtext last = l->v[l->n - 1];
	struct mtext gone = l->v[at];

	l->v[at] = last;
	l->n--;
	if (open_needs(m, s) == 0) {
		fail_msg("'%s' is not needed", gone.s);
	}
	l->v[at] = gone;
	l->v[l->n++] = last;
}

/* Checks that the manifest `text` covers all needs, and no longer does if any one of its requests
 * is removed. */
static void check_minimal(const char *text, const struct needs *s)
{
	struct manifest *m = parse(text);
	struct mtext_list *lists[] = { &m->read, &m->write, &m->env };

	assert_int_equal(open_needs(m, s), 0);
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		for (size_t k = 0; k < lists[i]->n; k++) {
			drop(lists[i], k, m, s);
		}
	}
	for (size_t i = 0; i < m->n_egress; i++) {
		struct egress_rule gone = m->egress[i];
		struct egress_rule *r = &m->egress[i];
		for (size_t k = 0; k < gone.n_ports; k++) {
			uint16_t port = r->ports[k];
			r->ports[k] = gone.n_ports > 1 ? r->ports[k == 0] : 0;
			r->n_ports = gone.n_ports > 1 ? gone.n_ports : 0;
			char name[] = "none.invalid";
			r->domain.s = gone.n_ports > 1 ? gone.domain.s : name;
			if (open_needs(m, s) == 0) {
				fail_msg("port %u of %s is not needed", (unsigned)port,
				         gone.domain.s);
			}
			r->ports[k] = port;
			*r = gone;
		}
	}
	manifest_free(m);
}

static void smallest(void **state)
{
	struct needs s = { .home = strdup("/home/u") };

	add(&s, NEED_READ, "~/notes/a", 0, 0, NULL);
	add(&s, NEED_READ, "~/notes/b", 0, 0, NULL);
	add(&s, NEED_READ, "/srv/dir", 0, 0, NULL);
	add(&s, NEED_READ, "/srv/dir/x", 0, 0, NULL);
	add(&s, NEED_READ, "/srv/dir-2", 0, 0, NULL);
	add(&s, NEED_READ, "/srv/out/log", 0, 0, NULL);
	add(&s, NEED_WRITE, "/srv/out", 0, 0, NULL);
	add(&s, NEED_READ, "/usr/share/x", 0, 0, NULL);
	add(&s, NEED_ENV, "TOWN", 0, 0, NULL);
	add(&s, NEED_NETWORK, "a.example", 0, PROTO_TLS, NULL);
	add(&s, NEED_NETWORK, "a.example", 443, PROTO_TLS, NULL);
	add(&s, NEED_NETWORK, "a.example", 8443, PROTO_TLS, NULL);
	add(&s, NEED_NETWORK, "b.example", 0, PROTO_TLS, NULL);
	add(&s, NEED_NETWORK, "c.example", 25, PROTO_TCP, NULL);
	add(&s, NEED_NETWORK, "c.example", 25, PROTO_TLS, NULL);
	add(&s, NEED_NETWORK, "c.example", 53, PROTO_UDP, NULL);
	auto_free char *text = propose(HEAD "permissions: {}\n", &s);
	check_minimal(text, &s);
	struct manifest *m = parse(text);
	assert_int_equal(m->read.n, 4);
	assert_int_equal(m->write.n, 1);
	assert_int_equal(m->n_egress, 4);
	for (size_t i = 0; i < m->n_egress; i++) {
		/* the need has no port, so the default port is proposed */
		if (strcmp(m->egress[i].domain.s, "b.example") == 0) {
			assert_true(m->egress[i].n_ports == 1 && m->egress[i].ports[0] == 443);
		}
	}
	manifest_free(m);
	assert_non_null(strstr(text, "- ~/notes/a  # run 1\n"));
	needs_done(&s);
}

static void siblings(void **state)
{
	static const struct {
		const char *dir;
		size_t files;
		enum need_kind kind;
		size_t lines;
	} CASES[] = {
		{ "~/notes", 7, NEED_READ, 7 },   { "~/notes", 8, NEED_READ, 1 },
		{ "~/notes", 9, NEED_WRITE, 1 },  { "~", 12, NEED_READ, 12 },
		{ "~/.config", 9, NEED_READ, 9 }, /* other programs have secrets in it */
		{ "/etc", 9, NEED_READ, 9 },      { "/home", 9, NEED_READ, 9 },
		{ "/opt/x", 9, NEED_READ, 1 },    { "/opt/x", 9, NEED_WRITE, 9 },
		{ "/tmp", 9, NEED_READ, 9 },      { "", 9, NEED_READ, 9 },
		{ "/srv", 9, NEED_WRITE, 9 },     { "/mnt", 9, NEED_READ, 9 },
		{ "/srv/x", 9, NEED_WRITE, 1 },
	};

	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		struct needs s = { 0 };
		for (size_t k = 0; k < CASES[i].files; k++) {
			char path[64];
			snprintf(path, sizeof(path), "%s/f%zu", CASES[i].dir, k);
			add(&s, CASES[i].kind, path, 0, 0, NULL);
		}
		auto_free char *text = propose(HEAD "permissions: {}\n", &s);
		struct manifest *m = parse(text);
		size_t lines = m->read.n + m->write.n;
		if (lines != CASES[i].lines) {
			fail_msg("%zu in %s: %zu lines", CASES[i].files, CASES[i].dir, lines);
		}
		manifest_free(m);
		check_minimal(text, &s);
		needs_done(&s);
	}
}

/* Both ~/d/a and ~/d have enough used files to be proposed as a directory. Only ~/d is proposed,
 * because it contains ~/d/a. */
static void siblings_in_siblings(void **state)
{
	struct needs s = { 0 };

	for (int i = 0; i < 2 * PROPOSE_SIBLINGS; i++) {
		char path[32];
		snprintf(path, sizeof(path), "~/d/%sf%d", i % 2 == 0 ? "a/" : "", i);
		add(&s, NEED_READ, path, 0, 0, NULL);
	}
	auto_free char *text = propose(HEAD "permissions: {}\n", &s);
	struct manifest *m = parse(text);
	assert_int_equal(m->read.n, 1);
	assert_string_equal(m->read.v[0].s, "~/d");
	manifest_free(m);
	check_minimal(text, &s);
	needs_done(&s);
}

/* If a system call needs a wider profile, this profile is proposed, unless the need is
 * dangerous. */
static void profiles(void **state)
{
	for (int danger = 0; danger < 2; danger++) {
		struct needs s = { 0 };
		const struct need n = { .kind = NEED_SYSCALL,
			                .value = (char *)(uintptr_t) "io_uring_setup",
			                .profile = PROFILE_PERMISSIVE,
			                .danger = danger ? "an attack" : NULL };
		assert_int_equal(needs_add(&s, &n), 0);
		auto_free char *text = propose(HEAD "permissions: {}\n", &s);
		struct manifest *m = parse(text);
		assert_int_equal(m->profile == PROFILE_PERMISSIVE, !danger);
		manifest_free(m);
		needs_done(&s);
	}
}

/* Missing files get no read line and do not count as a reason to propose their directory. A
 * directory that contains much else is not proposed. */
static void in_vain(void **state)
{
	static const struct {
		size_t there;
		size_t missing;
		bool small;
		enum need_kind kind;
		const char *lines;
	} CASES[] = {
		{ 0, 9, true, NEED_READ, "" },
		{ 2, 9, true, NEED_READ, "~/d/t0 ~/d/t1 " },
		{ 8, 1, true, NEED_READ, "~/d " },
		{ 8, 0, false, NEED_READ,
		  "~/d/t0 ~/d/t1 ~/d/t2 ~/d/t3 ~/d/t4 ~/d/t5 ~/d/t6 ~/d/t7 " },
		/* a missing file that the skill writes gets a line, because the skill creates it */
		{ 1, 2, true, NEED_WRITE, "~/d/m0 ~/d/m1 ~/d/t0 " },
	};

	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		struct needs s = { 0 };
		for (size_t k = 0; k < CASES[i].there + CASES[i].missing; k++) {
			bool missing = k >= CASES[i].there;
			char path[32];
			snprintf(path, sizeof(path), "~/d/%c%zu", missing ? 'm' : 't',
			         missing ? k - CASES[i].there : k);
			struct need n = { .kind = CASES[i].kind,
				          .value = path,
				          .missing = missing,
				          .in_small_dir = CASES[i].small };
			assert_int_equal(needs_add(&s, &n), 0);
		}
		auto_free char *text = propose(HEAD "permissions: {}\n", &s);
		struct manifest *m = parse(text);
		const struct mtext_list *l = CASES[i].kind == NEED_READ ? &m->read : &m->write;
		char lines[256] = "";
		for (size_t k = 0; k < l->n; k++) {
			strcat(strcat(lines, l->v[k].s), " ");
		}
		assert_string_equal(lines, CASES[i].lines);
		bool told = strstr(text, "# - ~/d/m0  # it does not exist\n") != NULL;
		assert_int_equal(told, CASES[i].missing == 9);
		manifest_free(m);
		needs_done(&s);
	}
}

static void dangerous_only_as_comment(void **state)
{
	struct needs s = { 0 };

	add(&s, NEED_READ, "~/.ssh/id\n  - /etc/shadow", 0, 0, "it holds SSH keys");
	add(&s, NEED_WRITE, "/etc/x", 0, 0, "configures");
	add(&s, NEED_ENV, "GITHUB_TOKEN", 0, 0, "a credential");
	add(&s, NEED_NETWORK, "203.0.113.1", 99, PROTO_TCP, "an address");
	add(&s, NEED_SYSCALL, "ptrace", 0, 0, "attack");
	auto_free char *text = propose(HEAD "permissions: {}\n", &s);
	struct manifest *m = parse(text);
	assert_int_equal(m->read.n + m->write.n + m->env.n + m->n_egress, 0);
	manifest_free(m);
	assert_non_null(
	        strstr(text, "# - ~/.ssh/id\\n  - /etc/shadow  # run 1: it holds SSH keys\n"));
	assert_non_null(strstr(text, "# - GITHUB_TOKEN  # run 1: a credential\n"));
	assert_non_null(strstr(text, "# - domain: 203.0.113.1, port 99  # run 1: an address\n"));
	needs_done(&s);
}

static void the_base_is_kept(void **state)
{
	struct needs s = { .home = strdup("/home/u") };

	add(&s, NEED_READ, "~/notes/a", 0, 0, NULL);
	add(&s, NEED_NETWORK, "x.example.com", 443, PROTO_TLS, NULL);
	add(&s, NEED_NETWORK, "y.example.com", 444, PROTO_TLS, NULL);
	add(&s, NEED_NETWORK, "z.example", 444, PROTO_TLS, NULL);
	auto_free char *text = propose("skill: {name: s, version: '1', description: "
	                               "d}\nentrypoint: {command: sh, args: [a]}\n"
	                               "resources: {memory_mb: 9}\npermissions:\n  network: "
	                               "{egress: [{domain: '*.example.com'}, {domain: "
	                               "z.example, ports: [443], protocol: tls}]}\n"
	                               "  filesystem: {read: [/home/u/notes, /srv/other]}\n",
	                               &s);
	struct manifest *m = parse(text);
	assert_int_equal(m->read.n, 2); /* "/home/u/notes" covers "~/notes/a" */
	assert_int_equal(m->n_egress, 4);
	assert_string_equal(m->egress[1].domain.s, "z.example");
	assert_int_equal(m->egress[1].n_ports, 1); /* the author's line stays as it was */
	assert_int_equal(m->resources.memory_mb, 9);
	assert_string_equal(m->args.v[0].s, "a");
	manifest_free(m);
	needs_done(&s);
}

static void at_the_caps(void **state)
{
	struct needs s = { 0 };

	for (unsigned i = 0; i <= MAX_NEEDS; i++) {
		char path[64];
		snprintf(path, sizeof(path), "/srv/%u/f", i);
		assert_false(s.cut);
		add(&s, NEED_READ, path, 0, 0, NULL);
	}
	assert_true(s.cut);
	assert_int_equal(s.n, MAX_NEEDS);
	auto_free char *text = propose(HEAD "permissions: {}\n", &s);
	struct manifest *m = parse(text);
	assert_int_equal(m->read.n, MAX_LIST_ITEMS);
	manifest_free(m);
	char more[64];
	snprintf(more, sizeof(more), "# - ... and %d more",
	         MAX_NEEDS - MAX_LIST_ITEMS - MAX_PROPOSED_NOTE);
	assert_non_null(strstr(text, more));
	needs_done(&s);
}

static void one_need_counts_up(void **state)
{
	struct needs s = { 0 };
	struct need hint = { .kind = NEED_ENV,
		             .value = (char *)(uintptr_t) "A",
		             .hint = true,
		             .why = (char *)(uintptr_t) "x.py:1",
		             .danger = "prose" };
	struct need tried = { .kind = NEED_ENV,
		              .value = (char *)(uintptr_t) "A",
		              .count = 3,
		              .denied = true,
		              .why = (char *)(uintptr_t) "run 1" };

	assert_int_equal(needs_add(&s, &hint), 0);
	assert_string_equal(s.v[0].danger, "prose");
	assert_int_equal(needs_add(&s, &tried), 0);
	assert_int_equal(s.n, 1);
	assert_int_equal(s.v[0].count, 4);
	assert_string_equal(s.v[0].why, "run 1");
	assert_null(s.v[0].danger);
	assert_true(s.v[0].denied && !s.v[0].hint);
	needs_done(&s);
}

/* If the skill once sent a decoy to a host, the host is dangerous, in whichever order the needs are
 * added. */
static void a_thief_stays_one(void **state)
{
	struct need fine = { .kind = NEED_NETWORK, .value = (char *)(uintptr_t) "a.example" };
	struct need thief = fine;
	struct need other = fine;

	thief.thief = true;
	thief.danger = "a decoy";
	other.danger = "something else";
	for (int first = 0; first < 2; first++) {
		struct needs s = { 0 };
		assert_int_equal(needs_add(&s, first ? &thief : &fine), 0);
		assert_int_equal(needs_add(&s, first ? &fine : &thief), 0);
		assert_true(s.n == 1 && s.v[0].thief);
		assert_string_equal(s.v[0].danger, "a decoy");
		needs_done(&s);
	}
	struct needs s = { 0 };
	assert_int_equal(needs_add(&s, &other), 0);
	assert_int_equal(needs_add(&s, &fine), 0);
	assert_null(s.v[0].danger);
	needs_done(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(smallest),
		cmocka_unit_test(siblings),
		cmocka_unit_test(siblings_in_siblings),
		cmocka_unit_test(profiles),
		cmocka_unit_test(in_vain),
		cmocka_unit_test(dangerous_only_as_comment),
		cmocka_unit_test(the_base_is_kept),
		cmocka_unit_test(at_the_caps),
		cmocka_unit_test(one_need_counts_up),
		cmocka_unit_test(a_thief_stays_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
