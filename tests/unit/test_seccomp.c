/* test_seccomp.c - the system call filters, without loading them into the kernel. A simulator runs
 * the compiled filters of both architectures for each row of the table below. The compiler of
 * filters is compared with a simple interpreter of the rules. The dump of the filters must equal
 * the golden files, and the filters in the library must equal the output of the compiler. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "unit.h"
#include "base/own.h"
#include "os/seccomp.h"
#include "seccomp_compile.h"
#include "seccomp_sim.h"

#define ALLOW     SECCOMP_RET_ALLOW
#define KILL      SECCOMP_RET_KILL_PROCESS
#define E(e)      (SECCOMP_RET_ERRNO | (e))
#define HIGH      0xdeadbeef00000000ULL /* the kernel ignores these in an int argument */
#define N_SKILL   ((size_t)SECCOMP_N_PROFILES * SECCOMP_N_REACHES)
#define N_FILTERS (N_SKILL + 4) /* the 4: init, broker, dialler, maker */

struct compiled {
	struct seccomp_which which;
	size_t n;
	struct sock_filter insns[BPF_MAXINSNS];
};

static struct compiled filters[2][N_FILTERS];

struct row {
	unsigned profiles;
	unsigned reaches;
	uint32_t want;
	const char *name;
	uint64_t args[6];
};

#define D   IN_DEFAULT
#define S   IN_STRICT
#define P   IN_PERMISSIVE
#define DP  IN_WIDE
#define DS  IN_NARROW
#define ALL IN_ALL

enum { INET = 2, INET6 = 10, UNIX = 1, NETLINK = 16, PACKET = 17, VSOCK = 40 };
enum { STREAM = 1, DGRAM = 2, RAW = 3, SEQPACKET = 5, NONBLOCK_CLOEXEC = 02004000 };

static const struct row ROWS[] = {
#include "seccomp_rows.h"
};

static uint32_t decide(const struct compiled *f, uint32_t arch, uint32_t nr, const uint64_t args[6])
{
	struct seccomp_data data = { .nr = (int)nr, .arch = arch };

	memcpy(data.args, args, sizeof(data.args));
	uint32_t action = sim_run(f->insns, f->n, &data);
	/* The supervisor also evaluates this filter, by seccomp_eval(): the result must be the
	 * same. */
	struct seccomp_blob blob = { f->insns, (uint16_t)f->n };
	assert_int_equal(seccomp_eval(&blob, &data), action);
	return action;
}

static int setup(void **state)
{
	for (size_t a = 0; a < SECCOMP_N_ARCHES; a++) {
		for (unsigned i = 0; i < N_FILTERS; i++) {
			struct compiled *f = &filters[a][i];
			bool ours = i >= N_SKILL;
			f->which.profile =
			        ours ? IN_INIT << (i - N_SKILL) : 1U << (i / SECCOMP_N_REACHES);
			f->which.reach = ours ? TO_UNIX : 1U << (i % SECCOMP_N_REACHES);
			if (seccomp_compile(&SECCOMP_ARCHES[a], f->which, f->insns, &f->n) != 0) {
				return -1;
			}
		}
	}
	return 0;
}

static void test_rows(void **state)
{
	size_t checked[2] = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
		const struct row *r = &ROWS[i];
		size_t before = checked[0] + checked[1];

		for (size_t k = 0; k < 2 * N_FILTERS; k++) {
			size_t a = k / N_FILTERS;
			const struct compiled *f = &filters[a][k % N_FILTERS];
			int nr = seccomp_number(&SECCOMP_ARCHES[a], r->name);

			assert_int_not_equal(nr, -2);
			if (nr < 0 || !(r->profiles & f->which.profile) ||
			    !(r->reaches & f->which.reach)) {
				continue;
			}
			uint32_t got = decide(f, SECCOMP_ARCHES[a].audit, (uint32_t)nr, r->args);
			if (got != r->want) {
				fail_msg("row %zu: %s on %s, profile %x reach %x: %#x instead of "
				         "%#x",
				         i, r->name, SECCOMP_ARCHES[a].name, f->which.profile,
				         f->which.reach, got, r->want);
			}
			checked[a]++;
		}
		assert_true(checked[0] + checked[1] > before);
	}
	assert_true(ARRAY_LEN(ROWS) >= 150 && checked[0] > 1000 && checked[1] > 1000);
}

/* A system call of another architecture has other numbers: the filter must kill the process. */
static void test_foreign_entry(void **state)
{
	static const uint64_t NONE[6];
	static const uint32_t FOREIGN[] = { AUDIT_ARCH_I386, AUDIT_ARCH_ARM, AUDIT_ARCH_S390X, 0 };
	const uint32_t x86 = AUDIT_ARCH_X86_64, arm = AUDIT_ARCH_AARCH64;

	for (unsigned i = 0; i < N_FILTERS; i++) {
		const struct compiled *f = &filters[0][i], *g = &filters[1][i];
		bool strictest = (f->which.profile & (IN_INIT | IN_BROKER | IN_MAKER)) != 0;
		uint32_t unknown = strictest ? KILL : E(ENOSYS);

		for (size_t k = 0; k < ARRAY_LEN(FOREIGN); k++) {
			assert_int_equal(decide(f, FOREIGN[k], 20, NONE), KILL);
			assert_int_equal(decide(g, FOREIGN[k], 20, NONE), KILL);
		}
		assert_int_equal(decide(f, arm, 57, NONE), KILL);
		assert_int_equal(decide(g, x86, 3, NONE), KILL);
		/* the control: close() is allowed */
		assert_int_equal(decide(f, x86, 3, NONE), ALLOW);
		assert_int_equal(decide(g, arm, 57, NONE), ALLOW);

		/* read() with x32's number */
		assert_int_equal(decide(f, x86, 0x40000000U, NONE), KILL);
		assert_int_equal(decide(f, x86, 0x40000000U | 520, NONE), KILL);
		assert_int_equal(decide(f, x86, 0x80000000U, NONE), KILL);
		assert_int_equal(decide(f, x86, 0xfffffffeU, NONE), KILL);
		assert_int_equal(decide(f, x86, 0xffffffffU, NONE), unknown);
		assert_int_equal(decide(f, x86, 0x3fffffffU, NONE), unknown);
		/* the number of a system call that is newer than our tables */
		assert_int_equal(decide(f, x86, 470, NONE), unknown);
		assert_int_equal(decide(g, arm, 470, NONE), unknown);
		assert_int_equal(decide(f, x86, 400, NONE), unknown);
	}
}

/* ---- the compiler against a simple interpreter of the rules --------------- */

static uint32_t read_half(const uint64_t args[6], unsigned arg)
{
	uint64_t whole = args[arg & ~UPPER_HALF];

	return (uint32_t)((arg & UPPER_HALF) != 0 ? whole >> 32 : whole);
}

static uint32_t read_rules(const struct seccomp_call *call, const uint64_t args[6])
{
	for (size_t i = 0; i < call->n_rules; i++) {
		const struct seccomp_rule *r = call->rules[i];
		bool holds = true;

		for (size_t k = 0; k < SECCOMP_MAX_CONDS && r->cond[k].mask != 0; k++) {
			bool same = (read_half(args, r->cond[k].arg) & r->cond[k].mask) ==
			            r->cond[k].value;
			holds = holds && same != r->cond[k].differs;
		}
		if (holds) {
			return r->action;
		}
	}
	return call->action;
}

/* Tries arguments that match the rule. Then inverts each single bit of them in turn, and tries
 * again. */
static void try_around(const struct compiled *f, uint32_t arch, const struct seccomp_call *call,
                       const struct seccomp_rule *r)
{
	uint64_t args[6] = { 0 };

	for (size_t k = 0; k < SECCOMP_MAX_CONDS && r->cond[k].mask != 0; k++) {
		const struct seccomp_cond *q = &r->cond[k];
		uint64_t fits = q->differs ? q->value ^ (q->mask & -q->mask) : q->value;
		args[q->arg & ~UPPER_HALF] |= (q->arg & UPPER_HALF) != 0 ? fits << 32 : fits;
	}
	assert_int_equal(decide(f, arch, call->nr, args), read_rules(call, args));
	for (size_t k = 0; k < SECCOMP_MAX_CONDS && r->cond[k].mask != 0; k++) {
		for (unsigned bit = 0; bit < 64; bit++) {
			uint64_t *arg = &args[r->cond[k].arg & ~UPPER_HALF];
			*arg ^= 1ULL << bit;
			assert_int_equal(decide(f, arch, call->nr, args), read_rules(call, args));
			*arg ^= 1ULL << bit;
		}
	}
}

static void test_compiler(void **state)
{
	static const uint64_t ZERO[6], ONES[6] = { ~0ULL, ~0ULL, ~0ULL, ~0ULL, ~0ULL, ~0ULL };
	static struct seccomp_policy policy;

	for (size_t k = 0; k < 2 * N_FILTERS; k++) {
		const struct seccomp_arch *arch = &SECCOMP_ARCHES[k / N_FILTERS];
		const struct compiled *f = &filters[k / N_FILTERS][k % N_FILTERS];
		size_t at = 0;

		assert_int_equal(seccomp_resolve(arch, f->which, &policy), 0);
		for (uint32_t nr = 0; nr < 1000; nr++) {
			if (at == policy.n_calls || policy.calls[at].nr != nr) {
				assert_int_equal(decide(f, arch->audit, nr, ZERO), policy.fallback);
				assert_int_equal(decide(f, arch->audit, nr, ONES), policy.fallback);
				continue;
			}
			const struct seccomp_call *call = &policy.calls[at++];
			assert_int_equal(decide(f, arch->audit, nr, ZERO), read_rules(call, ZERO));
			assert_int_equal(decide(f, arch->audit, nr, ONES), read_rules(call, ONES));
			for (size_t i = 0; i < call->n_rules; i++) {
				try_around(f, arch->audit, call, call->rules[i]);
			}
		}
		assert_int_equal(at, policy.n_calls);
	}
}

/* ---- what is shipped ----------------------------------------------------- */

static void test_golden(void **state)
{
	for (size_t a = 0; a < SECCOMP_N_ARCHES; a++) {
		static char want[256 * 1024];
		char path[4096];
		auto_free char *got = NULL;
		size_t len = 0;

		FILE *out = open_memstream(&got, &len);
		assert_non_null(out);
		assert_int_equal(seccomp_dump(&SECCOMP_ARCHES[a], out), 0);
		assert_int_equal(fclose(out), 0);

		snprintf(path, sizeof(path), "%s/tests/unit/seccomp-golden/%s.txt",
		         getenv("SSB_SOURCE"), SECCOMP_ARCHES[a].name);
		auto_file in = fopen(path, "re");
		assert_non_null(in);
		size_t n = fread(want, 1, sizeof(want) - 1, in);
		want[n] = '\0';
		if (n != len || memcmp(want, got, n) != 0) {
			fail_msg("%s differs from the tables: run `ninja seccomp-golden`, read the "
			         "difference",
			         path);
		}
	}
}

/* A filter for an observed run decides as the filter without observation, or asks the
 * supervisor. */
static void test_observed(void **state)
{
	static const uint64_t NONE[6];
	static struct compiled told;
	size_t asked = 0;

	for (size_t k = 0; k < 2 * N_SKILL; k++) {
		size_t a = k / N_SKILL;
		const struct compiled *plain = &filters[a][k % N_SKILL];
		told.which = plain->which;
		told.which.observed = true;
		assert_int_equal(
		        seccomp_compile(&SECCOMP_ARCHES[a], told.which, told.insns, &told.n), 0);
		for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
			int nr = seccomp_number(&SECCOMP_ARCHES[a], ROWS[i].name);
			if (nr < 0) {
				continue;
			}
			uint32_t arch = SECCOMP_ARCHES[a].audit;
			uint32_t got = decide(&told, arch, (uint32_t)nr, ROWS[i].args);
			uint32_t want = decide(plain, arch, (uint32_t)nr, ROWS[i].args);
			assert_true(got == want || got == SECCOMP_RET_USER_NOTIF);
			asked += got == SECCOMP_RET_USER_NOTIF;
		}
		/* If the filter without observation would kill the process, this filter must tell
		 * the supervisor first. */
		assert_int_equal(decide(&told, AUDIT_ARCH_I386, 20, NONE), SECCOMP_RET_USER_NOTIF);
		assert_int_equal(decide(&told, SECCOMP_ARCHES[a].audit, 0x40000000U, NONE),
		                 SECCOMP_ARCHES[a].x32 ? SECCOMP_RET_USER_NOTIF : E(ENOSYS));
	}
	assert_true(asked > 100);
}

static void test_blobs(void **state)
{
#if defined(__x86_64__)
	const size_t host = 0;
#else
	const size_t host = 1;
#endif
	const struct seccomp_blob *const OURS[] = { &seccomp_init_blob, &seccomp_broker_blob,
		                                    &seccomp_dialler_blob, &seccomp_maker_blob };
	for (unsigned i = 0; i < N_FILTERS; i++) {
		const struct compiled *f = &filters[host][i];
		unsigned reach = i % SECCOMP_N_REACHES;
		const struct seccomp_blob *b =
		        i >= N_SKILL
		                ? OURS[i - N_SKILL]
		                : seccomp_blob(i / SECCOMP_N_REACHES, reach == SECCOMP_REACH_UNIX,
		                               reach != SECCOMP_REACH_NONE);
		assert_int_equal(b->len, f->n);
		assert_memory_equal(b->insns, f->insns, f->n * sizeof(f->insns[0]));
	}
	/* Without internet sockets there are no unix sockets either: both filters are the same. */
	assert_ptr_equal(seccomp_blob(SECCOMP_PROFILE_DEFAULT, true, false),
	                 seccomp_blob(SECCOMP_PROFILE_DEFAULT, false, false));
}

/* The tables decide every system call of both architectures for each profile. The default action is
 * only for calls that future kernels add. */
static void test_nothing_forgotten(void **state)
{
	static struct seccomp_policy policy;

	for (size_t k = 0; k < 2 * N_SKILL; k++) {
		size_t a = k / N_SKILL;
		const struct seccomp_arch *arch = &SECCOMP_ARCHES[a];
		/* the last number before 424, at which both architectures continue */
		size_t last = a == 0 ? 336 : 294;

		assert_int_equal(seccomp_resolve(arch, filters[a][k % N_SKILL].which, &policy), 0);
		for (size_t i = 0, nr = 0; i < policy.n_calls; i++, nr++) {
			if (a == 1 && nr == 244) {
				nr = 260; /* aarch64 does not use 244 to 259 */
			}
			if (nr == last + 1) {
				nr = 424;
			}
			assert_int_equal(policy.calls[i].nr, nr);
		}
		assert_int_equal(policy.calls[policy.n_calls - 1].nr, 469);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_foreign_entry),
		cmocka_unit_test(test_compiler),
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_observed),
		cmocka_unit_test(test_blobs),
		cmocka_unit_test(test_nothing_forgotten),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
