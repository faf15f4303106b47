/* test_options.c - the owner's flags: which values are accepted, and which are refused with a
 * remedy. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"
#include "base/limits.h"
#include "base/own.h"
#include "policy/options.h"

static int set(struct ssb_options *o, enum ssb_option what, const char *value,
               struct ssb_error *err)
{
	*err = (struct ssb_error){ 0 };
	return ssb_options_set(o, what, value, err);
}

#define AT(field) offsetof(struct resources, field)

static void test_numbers(void **state)
{
	static const struct {
		enum ssb_option what;
		const char *value;
		size_t at;
		uint64_t expected;
	} GOOD[] = {
		{ SSB_OPT_MEMORY, "512M", AT(memory_mb), 512 },
		{ SSB_OPT_MEMORY, "512", AT(memory_mb), 512 },
		{ SSB_OPT_MEMORY, "512MB", AT(memory_mb), 512 },
		{ SSB_OPT_MEMORY, "1Gi", AT(memory_mb), 1024 },
		{ SSB_OPT_MEMORY, "2GiB", AT(memory_mb), 2048 },
		{ SSB_OPT_MEMORY, "1T", AT(memory_mb), MAX_MEMORY_MB },
		{ SSB_OPT_MEMORY, "4", AT(memory_mb), MIN_MEMORY_MB },
		/* rounded up to whole MiB, so that it is not less than requested */
		{ SSB_OPT_MEMORY, "5000K", AT(memory_mb), 5 },
		{ SSB_OPT_TIMEOUT, "90", AT(max_runtime_seconds), 90 },
		{ SSB_OPT_TIMEOUT, "30s", AT(max_runtime_seconds), 30 },
		{ SSB_OPT_TIMEOUT, "5m", AT(max_runtime_seconds), 300 },
		{ SSB_OPT_TIMEOUT, "720h", AT(max_runtime_seconds), MAX_RUNTIME_SECONDS },
		{ SSB_OPT_CPU_SHARES, "2", AT(cpu_shares), 2 },
		{ SSB_OPT_CPU_SHARES, "262144", AT(cpu_shares), MAX_CPU_SHARES },
		{ SSB_OPT_MAX_OUTPUT, "1M", AT(max_output_bytes), 1048576 },
		{ SSB_OPT_MAX_OUTPUT, "1000", AT(max_output_bytes), 1000 },
		{ SSB_OPT_MAX_OUTPUT, "1T", AT(max_output_bytes), MAX_OUTPUT_BYTES_CAP },
		{ SSB_OPT_MAX_PROCESSES, "1", AT(max_processes), 1 },
		{ SSB_OPT_MAX_FILES, "16", AT(max_open_files), 16 },
		{ SSB_OPT_MAX_DISK, "64M", AT(max_disk_mb), 64 },
	};
	struct ssb_options *o = ssb_options_new();
	struct ssb_error err;

	assert_non_null(o);
	assert_true(o->res.memory_mb == OPTION_UNSET);
	for (size_t i = 0; i < ARRAY_LEN(GOOD); i++) {
		assert_int_equal(set(o, GOOD[i].what, GOOD[i].value, &err), 0);
		uint64_t v = *(uint64_t *)(void *)((char *)&o->res + GOOD[i].at);
		if (v != GOOD[i].expected) {
			fail_msg("%s %s gives %llu", options_flag(GOOD[i].what), GOOD[i].value,
			         (unsigned long long)v);
		}
	}
	ssb_options_free(o);
}

static void test_bad_values(void **state)
{
	static const struct {
		enum ssb_option what;
		const char *value;
	} BAD[] = {
		{ SSB_OPT_MEMORY, "" },
		{ SSB_OPT_MEMORY, "-1" },
		{ SSB_OPT_MEMORY, "+5" },
		{ SSB_OPT_MEMORY, " 5" },
		{ SSB_OPT_MEMORY, "5 M" },
		{ SSB_OPT_MEMORY, "5X" },
		{ SSB_OPT_MEMORY, "5MM" },
		{ SSB_OPT_MEMORY, "5Mi5" },
		{ SSB_OPT_MEMORY, "0x10" },
		{ SSB_OPT_MEMORY, "1.5G" },
		{ SSB_OPT_MEMORY, "3" },
		{ SSB_OPT_MEMORY, "1048577" },
		{ SSB_OPT_MEMORY, "18446744073709551616" },
		{ SSB_OPT_MEMORY, "18014398509481984K" },
		{ SSB_OPT_TIMEOUT, "0" },
		{ SSB_OPT_TIMEOUT, "5d" },
		{ SSB_OPT_TIMEOUT, "5ms" },
		{ SSB_OPT_TIMEOUT, "721h" },
		{ SSB_OPT_CPU_SHARES, "1" },
		{ SSB_OPT_CPU_SHARES, "1K" },
		{ SSB_OPT_CPU_SHARES, "262145" },
		{ SSB_OPT_MAX_OUTPUT, "2T" },
		{ SSB_OPT_MAX_OUTPUT, "0" },
		{ SSB_OPT_MAX_PROCESSES, "0" },
		{ SSB_OPT_MAX_PROCESSES, "65537" },
		{ SSB_OPT_MAX_FILES, "15" },
		{ SSB_OPT_MAX_DISK, "0" },
		{ SSB_OPT_PROFILE, "lenient" },
		{ SSB_OPT_PROFILE, "Strict" },
		{ SSB_OPT_TOOLCHAIN, "on" },
		{ SSB_OPT_BEST_EFFORT, "all" },
		{ SSB_OPT_UNIX_SOCKETS, "true" },
		{ SSB_OPT_TTY, "maybe" },
		{ SSB_OPT_READ, "" },
		{ SSB_OPT_WITHHOLD, "" },
		{ SSB_OPT_TRACE_OUTPUT, "" },
		{ SSB_OPT_NET, "*" },
		{ SSB_OPT_NET, "example.com:0" },
		{ SSB_OPT_NET, "example.com:65536" },
		{ SSB_OPT_NET, "example.com:" },
		{ SSB_OPT_NET, "example.com:http" },
		{ SSB_OPT_NET, "[::1" },
		{ SSB_OPT_NET, "" },
		{ SSB_OPT_ALLOW_PRIVATE, "" },
		{ SSB_OPT_ALLOW_PRIVATE, "10" },
		{ SSB_OPT_ALLOW_PRIVATE, "10/8" },
		{ SSB_OPT_ALLOW_PRIVATE, "10.0.0.1/8" },
		{ SSB_OPT_ALLOW_PRIVATE, "10.0.0.0/33" },
		{ SSB_OPT_ALLOW_PRIVATE, "0x7f.0.0.1" },
		{ SSB_OPT_ALLOW_PRIVATE, "localhost" },
		{ SSB_OPT_ALLOW_PRIVATE, "[::1]" },
		{ SSB_OPT_ALLOW_PRIVATE, "fe80::1%eth0" },
		{ SSB_OPT_ENV, "" },
		{ SSB_OPT_ENV, "=x" },
		{ SSB_OPT_ENV, "A B" },
		{ SSB_OPT_ENV, "A*" },
		{ SSB_OPT_ENV, "1A=2" },
		{ (enum ssb_option)99, "x" },
	};
	struct ssb_options *o = ssb_options_new();
	struct ssb_error err;

	for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
		if (set(o, BAD[i].what, BAD[i].value, &err) == 0) {
			fail_msg("%s '%s' was taken", options_flag(BAD[i].what), BAD[i].value);
		}
		assert_int_equal(err.code, SSB_E_USAGE);
		assert_true(err.text[0] != '\0' && err.where[0] != '\0');
	}
	assert_int_equal(set(o, SSB_OPT_NET, "https://example.com", &err), -1);
	/* The ":" belongs to the scheme, so the message must not be about a port. */
	assert_non_null(strstr(err.text, "has a scheme"));
	assert_int_equal(set(o, SSB_OPT_READ, NULL, &err), -1);
	/* No refused value was stored. */
	assert_true(o->res.memory_mb == OPTION_UNSET && o->net.n == 0 && o->env.n == 0);
	assert_int_equal(o->allow_private.n, 0);
	ssb_options_free(o);
}

static void test_lists_are_bounded(void **state)
{
	struct ssb_options *o = ssb_options_new();
	struct ssb_error err;

	for (size_t i = 0; i < MAX_GRANTS; i++) {
		assert_int_equal(set(o, SSB_OPT_READ, "/x", &err), 0);
	}
	assert_int_equal(set(o, SSB_OPT_READ, "/x", &err), -1);
	assert_int_equal(err.code, SSB_E_LIMIT);
	assert_int_equal(o->read.n, MAX_GRANTS);
	assert_null(o->read.v[MAX_GRANTS]);

	/* --withhold can be given for as many requests as a manifest can have. */
	for (size_t i = 0; i < MAX_REQUESTS; i++) {
		assert_int_equal(set(o, SSB_OPT_WITHHOLD, "read /x", &err), 0);
	}
	assert_int_equal(set(o, SSB_OPT_WITHHOLD, "read /x", &err), -1);
	assert_int_equal(err.code, SSB_E_LIMIT);

	char *path = malloc(MAX_PATH_BYTES + 1);
	memset(path, 'a', MAX_PATH_BYTES);
	path[MAX_PATH_BYTES] = '\0';
	assert_int_equal(set(o, SSB_OPT_WRITE, path, &err), -1);
	path[MAX_PATH_BYTES - 1] = '\0';
	assert_int_equal(set(o, SSB_OPT_WRITE, path, &err), 0);
	free(path);
	ssb_options_free(o);
}

static void test_net(void **state)
{
	static const struct {
		const char *value;
		const char *host;
		uint16_t port;
		enum host_kind kind;
	} GOOD[] = {
		{ "api.example.com", "api.example.com", 443, HOST_EXACT },
		{ "API.Example.com:8443", "api.example.com", 8443, HOST_EXACT },
		{ "*.example.com:80", "*.example.com", 80, HOST_WILDCARD },
		{ "192.0.2.7:22", "192.0.2.7", 22, HOST_ADDRESS },
		{ "10.0.0.0/8:5432", "10.0.0.0/8", 5432, HOST_CIDR },
		{ "2001:db8::1", "2001:db8::1", 443, HOST_ADDRESS },
		{ "[2001:db8::1]:65535", "2001:db8::1", 65535, HOST_ADDRESS },
	};

	for (size_t i = 0; i < ARRAY_LEN(GOOD); i++) {
		struct egress_rule r;
		const char *wrong = options_net(GOOD[i].value, &r);
		if (wrong != NULL) {
			fail_msg("%s: %s", GOOD[i].value, wrong);
		}
		assert_string_equal(r.domain.s, GOOD[i].host);
		assert_int_equal(r.n_ports, 1);
		assert_int_equal(r.ports[0], GOOD[i].port);
		assert_int_equal(r.kind, GOOD[i].kind);
		free(r.domain.s);
		free(r.ports);
	}
}

static void test_allow_private(void **state)
{
	static const char *const GOOD[][2] = {
		{ "10.0.0.0/8", "10.0.0.0/8" },
		{ "127.0.0.1", "127.0.0.1/32" },
		{ "::FFFF:192.168.0.0/112", "192.168.0.0/16" },
		{ "FD00::/8", "fd00::/8" },
	};
	struct ssb_options *o = ssb_options_new();
	struct ssb_error err;

	assert_string_equal(options_flag(SSB_OPT_ALLOW_PRIVATE), "--allow-private");
	for (size_t i = 0; i < ARRAY_LEN(GOOD); i++) {
		assert_int_equal(set(o, SSB_OPT_ALLOW_PRIVATE, GOOD[i][0], &err), 0);
		assert_int_equal(o->allow_private.n, i + 1);
		assert_string_equal(o->allow_private.v[i], GOOD[i][1]);
	}
	for (size_t i = ARRAY_LEN(GOOD); i < MAX_GRANTS; i++) {
		assert_int_equal(set(o, SSB_OPT_ALLOW_PRIVATE, "::1", &err), 0);
	}
	assert_int_equal(set(o, SSB_OPT_ALLOW_PRIVATE, "::1", &err), -1);
	assert_int_equal(err.code, SSB_E_LIMIT);
	ssb_options_free(o);
}

static void test_words(void **state)
{
	struct ssb_options *o = ssb_options_new();
	struct ssb_error err;

	assert_int_equal(o->profile, -1);
	assert_int_equal(o->unix_sockets, -1);
	assert_int_equal(set(o, SSB_OPT_PROFILE, "strict", &err), 0);
	assert_int_equal(o->profile, PROFILE_STRICT);
	assert_int_equal(set(o, SSB_OPT_UNIX_SOCKETS, "no", &err), 0);
	assert_int_equal(o->unix_sockets, 0);
	assert_int_equal(set(o, SSB_OPT_TTY, "no", &err), 0);
	assert_int_equal(o->tty, TTY_NO);
	assert_int_equal(set(o, SSB_OPT_TOOLCHAIN, "auto", &err), 0);
	assert_true(o->toolchain_auto && o->toolchain_given);
	assert_int_equal(set(o, SSB_OPT_TOOLCHAIN, "default", &err), 0);
	assert_true(o->toolchain_auto && !o->toolchain_given);
	assert_int_equal(set(o, SSB_OPT_BEST_EFFORT, "userns", &err), 0);
	assert_int_equal(set(o, SSB_OPT_BEST_EFFORT, "seccomp", &err), 0);
	assert_int_equal(o->best_effort, 1U << LAYER_USERNS | 1U << LAYER_SECCOMP);
	assert_int_equal(set(o, SSB_OPT_POLICY_FILE, "", &err), 0);
	assert_string_equal(o->policy_file, "");
	ssb_options_free(o);
}

static void test_layer_names(void **state)
{
	for (int i = 0; i < LAYER_COUNT; i++) {
		assert_int_equal(plan_layer_from_name(plan_layer_name((enum layer_id)i)), i);
	}
	assert_int_equal(plan_layer_from_name("none"), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),           cmocka_unit_test(test_bad_values),
		cmocka_unit_test(test_lists_are_bounded), cmocka_unit_test(test_net),
		cmocka_unit_test(test_allow_private),     cmocka_unit_test(test_words),
		cmocka_unit_test(test_layer_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
