/* seccomp_dump.c - writes the tables as text, for review and for the golden files. */
#include "seccomp_compile.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>

static const char *const PROFILE_NAMES[32] = { "default", "strict",  "permissive", "init",
	                                       "broker",  "dialler", "maker" };
static const char *const REACH_NAMES[32] = { "unix", "inet", "none" };

/* A call that any filter names; the list is sorted by number. */
struct listed {
	int nr;
	char name[40];
};

static int by_number(const void *a, const void *b)
{
	const struct listed *x = a, *y = b;

	return x->nr - y->nr;
}

static void put_set(FILE *out, unsigned set, unsigned all, const char *const names[32], int width)
{
	int used = set == all ? fprintf(out, "all") : 0;

	for (unsigned i = 0; set != all && i < 32 && names[i] != NULL; i++) {
		if ((set & (1U << i)) != 0) {
			used += fprintf(out, "%s%s", used > 0 ? "," : "", names[i]);
		}
	}
	fprintf(out, "%*s ", used < width ? width - used : 0, "");
}

static void put_action(FILE *out, uint32_t action)
{
	uint32_t data = action & SECCOMP_RET_DATA;

	switch (action & SECCOMP_RET_ACTION_FULL) {
	case SECCOMP_RET_ALLOW:
		fprintf(out, "allow");
		break;
	case SECCOMP_RET_KILL_PROCESS:
		fprintf(out, "kill");
		break;
	case SECCOMP_RET_USER_NOTIF:
		fprintf(out, "ask");
		break;
	default:
		fprintf(out, "%s", data == 0 ? "no-op" : strerrorname_np((int)data));
	}
}

static void put_head(FILE *out, const struct listed *l, unsigned profiles, unsigned reaches)
{
	fprintf(out, "%3d %-23s ", l->nr, l->name);
	put_set(out, profiles, IN_ALL, PROFILE_NAMES, 18);
	put_set(out, reaches, TO_ANY, REACH_NAMES, 9);
}

static void put_rule(FILE *out, const struct listed *l, const struct seccomp_rule *r)
{
	put_head(out, l, r->profiles, r->reaches);
	for (size_t i = 0; i < SECCOMP_MAX_CONDS && r->cond[i].mask != 0; i++) {
		const struct seccomp_cond *q = &r->cond[i];

		fprintf(out, "%sa%u%s", i > 0 ? " and " : "if ", q->arg & ~UPPER_HALF,
		        (q->arg & UPPER_HALF) != 0 ? "h" : "");
		if (q->mask != ~0U) {
			fprintf(out, "&%#x", q->mask);
		}
		fprintf(out, "%s%#x", q->differs ? "!=" : "==", q->value);
	}
	fprintf(out, ": ");
	put_action(out, r->action);
	fprintf(out, "\n");
}

static bool names_contain(const char *names, const char *name)
{
	size_t len = strlen(name);

	for (const char *s = names; (s = strstr(s, name)) != NULL; s += len) {
		if ((s == names || s[-1] == ' ') && (s[len] == ' ' || s[len] == '\0')) {
			return true;
		}
	}
	return false;
}

static void put_call(FILE *out, const struct listed *l)
{
	for (size_t i = 0; i < SECCOMP_N_RULES; i++) {
		if (strcmp(SECCOMP_RULES[i].name, l->name) == 0) {
			put_rule(out, l, &SECCOMP_RULES[i]);
		}
	}
	for (size_t i = 0; i < SECCOMP_N_GROUPS; i++) {
		const struct seccomp_group *g = &SECCOMP_GROUPS[i];
		if (names_contain(g->names, l->name)) {
			put_head(out, l, g->profiles, g->reaches);
			put_action(out, g->action);
			fprintf(out, "\n");
		}
	}
}

static size_t list_calls(const struct seccomp_arch *arch, struct listed list[SECCOMP_MAX_CALLS])
{
	size_t n = 0;

	for (size_t i = 0; i < SECCOMP_N_GROUPS; i++) {
		const char *s = SECCOMP_GROUPS[i].names;
		while (*(s += strspn(s, " ")) != '\0' && n < SECCOMP_MAX_CALLS) {
			struct listed *l = &list[n];
			int len = (int)strcspn(s, " ");
			bool seen = false;

			snprintf(l->name, sizeof(l->name), "%.*s", len, s);
			l->nr = seccomp_number(arch, l->name);
			for (size_t k = 0; k < n; k++) {
				seen = seen || list[k].nr == l->nr;
			}
			n += l->nr >= 0 && !seen;
			s += len;
		}
	}
	qsort(list, n, sizeof(list[0]), by_number);
	return n;
}

/* FNV-1a, which only shows that a filter has changed. */
static uint64_t checksum(const struct sock_filter *insns, size_t n)
{
	uint64_t h = 0xcbf29ce484222325ULL;

	for (size_t i = 0; i < n; i++) {
		uint8_t b[] = { (uint8_t)insns[i].code,
			        (uint8_t)(insns[i].code >> 8),
			        insns[i].jt,
			        insns[i].jf,
			        (uint8_t)insns[i].k,
			        (uint8_t)(insns[i].k >> 8),
			        (uint8_t)(insns[i].k >> 16),
			        (uint8_t)(insns[i].k >> 24) };
		for (size_t k = 0; k < sizeof(b); k++) {
			h = (h ^ b[k]) * 0x100000001b3ULL;
		}
	}
	return h;
}

static int put_filter(const struct seccomp_arch *arch, unsigned profile, unsigned reach,
                      bool observed, FILE *out)
{
	static struct sock_filter insns[BPF_MAXINSNS];
	size_t n;

	if (seccomp_compile(arch, (struct seccomp_which){ 1U << profile, 1U << reach, observed },
	                    insns, &n) != 0) {
		return -1;
	}
	fprintf(out, "%-10s %s%s: %zu instructions, %016llx\n", PROFILE_NAMES[profile],
	        REACH_NAMES[reach], observed ? " observed" : "", n,
	        (unsigned long long)checksum(insns, n));
	return 0;
}

int seccomp_dump(const struct seccomp_arch *arch, FILE *out)
{
	static struct listed list[SECCOMP_MAX_CALLS];
	size_t n = list_calls(arch, list);

	fprintf(out,
	        "# %s. Written by `ninja seccomp-golden`. The first line that fits decides;\n"
	        "# what is not listed is ENOSYS, for init and broker it is kill. Another "
	        "architecture%s: "
	        "kill.\n",
	        arch->name, arch->x32 ? ", x32 included" : "");
	for (size_t i = 0; i < n; i++) {
		put_call(out, &list[i]);
	}
	for (unsigned p = 0; p < SECCOMP_N_PROFILES; p++) {
		for (unsigned r = 0; r < SECCOMP_N_REACHES; r++) {
			if (put_filter(arch, p, r, false, out) != 0 ||
			    put_filter(arch, p, r, true, out) != 0) {
				return -1;
			}
		}
	}
	for (unsigned p = SECCOMP_N_PROFILES; PROFILE_NAMES[p] != NULL; p++) {
		if (put_filter(arch, p, SECCOMP_REACH_UNIX, false, out) != 0) {
			return -1;
		}
	}
	return 0;
}
