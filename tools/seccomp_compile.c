/* seccomp_compile.c - compiles the tables to BPF.
 *
 * The filter checks the architecture and then looks the number up in a binary tree. Its leaves are
 * ranges of numbers with one decision. Most calls cost eight comparisons, and the kernel remembers
 * for each number whether the call is allowed with any arguments (Linux 5.11). BPF jumps only
 * forward, and a conditional jump spans at most 255 instructions. So the tree is laid out depth
 * first, with an unconditional jump where the left half is too large. Finally, equal returns are
 * shared. */
#include "seccomp_compile.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "seccomp_names.h"

#define MAX_NAME   40
#define MAX_RANGES (2 * SECCOMP_MAX_CALLS + 4)

const struct seccomp_arch SECCOMP_ARCHES[] = {
	{ "x86_64", AUDIT_ARCH_X86_64, true },
	{ "aarch64", AUDIT_ARCH_AARCH64, false },
};
const size_t SECCOMP_N_ARCHES = sizeof(SECCOMP_ARCHES) / sizeof(SECCOMP_ARCHES[0]);

const struct seccomp_arch *seccomp_arch_find(const char *name)
{
	for (size_t i = 0; i < SECCOMP_N_ARCHES; i++) {
		if (strcmp(SECCOMP_ARCHES[i].name, name) == 0) {
			return &SECCOMP_ARCHES[i];
		}
	}
	return NULL;
}

/* ---- names ------------------------------------------------------------- */

int seccomp_number(const struct seccomp_arch *arch, const char *name)
{
	for (size_t i = 0; i < SECCOMP_N_NUMBERS; i++) {
		const struct seccomp_number *n = &SECCOMP_NUMBERS[i];
		if (strcmp(n->name, name) == 0) {
			return arch->audit == AUDIT_ARCH_X86_64 ? n->x86_64 : n->aarch64;
		}
	}
	return seccomp_names_find(arch->audit, name);
}

void seccomp_name(const struct seccomp_arch *arch, int nr, char *out, size_t size)
{
	for (size_t i = 0; i < SECCOMP_N_NUMBERS; i++) {
		const struct seccomp_number *n = &SECCOMP_NUMBERS[i];
		if ((arch->audit == AUDIT_ARCH_X86_64 ? n->x86_64 : n->aarch64) == nr) {
			snprintf(out, size, "%s", n->name);
			return;
		}
	}
	seccomp_names_of(arch->audit, nr, out, size);
}

/* Copies the next word of *names and advances *names. Returns its length; 0 at the end. */
static size_t next_name(const char **names, char ret_name[MAX_NAME])
{
	const char *s = *names + strspn(*names, " ");
	size_t len = strcspn(s, " ");

	if (len >= MAX_NAME) {
		len = MAX_NAME - 1; /* the word is cut, so no call has this name */
	}
	memcpy(ret_name, s, len);
	ret_name[len] = '\0';
	*names = s + len;
	return len;
}

static bool observed(const char *name)
{
	const char *names = SECCOMP_OBSERVED;
	char word[MAX_NAME];

	while (next_name(&names, word) > 0) {
		if (strcmp(word, name) == 0) {
			return true;
		}
	}
	return false;
}

/* Returns the action that the filter takes in place of `action`: an observed filter asks the
 * supervisor about refused calls and about some allowed ones. */
static uint32_t told(const struct seccomp_policy *p, const struct seccomp_call *call,
                     uint32_t action)
{
	static const int LOUD[] = { EPERM,           EACCES, EAFNOSUPPORT, EPROTONOSUPPORT,
		                    ESOCKTNOSUPPORT, EBUSY,  ENOTTY };
	bool refused = action == SECCOMP_RET_KILL_PROCESS;

	for (size_t i = 0; i < sizeof(LOUD) / sizeof(LOUD[0]); i++) {
		refused = refused || action == (SECCOMP_RET_ERRNO | (uint32_t)LOUD[i]);
	}
	/* ENOSYS is not reported, as programs expect it, except for the calls in
	 * SECCOMP_OBSERVED. */
	bool news = action == SECCOMP_RET_ALLOW || action == (SECCOMP_RET_ERRNO | ENOSYS);
	bool ask = p->observed && (refused || (news && call->told));

	return ask ? SECCOMP_RET_USER_NOTIF : action;
}

/* Returns the action for a call of another ABI: the process is killed. An observed filter reports
 * the call first. */
static uint32_t foreign(const struct seccomp_policy *p)
{
	return p->observed ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_KILL_PROCESS;
}

static bool belongs(unsigned profiles, unsigned reaches, struct seccomp_which which)
{
	return (profiles & which.profile) != 0 && (reaches & which.reach) != 0;
}

/* ---- tables to one filter's decisions ---------------------------------- */

static int add_rules(struct seccomp_call *call, const char *name, struct seccomp_which which)
{
	for (size_t i = 0; i < SECCOMP_N_RULES; i++) {
		const struct seccomp_rule *r = &SECCOMP_RULES[i];
		if (strcmp(r->name, name) != 0 || !belongs(r->profiles, r->reaches, which) ||
		    (r->action == SECCOMP_RET_USER_NOTIF && !which.observed)) {
			continue;
		}
		if (call->n_rules == SECCOMP_MAX_PER_CALL || r->cond[0].mask == 0) {
			fprintf(stderr,
			        "seccomp-gen: %s: too many rules, or one that has no condition\n",
			        name);
			return -1;
		}
		call->rules[call->n_rules++] = r;
		call->name = r->name;
	}
	return 0;
}

static int add_call(struct seccomp_policy *p, const struct seccomp_arch *arch, const char *name,
                    uint32_t action, struct seccomp_which which)
{
	int nr = seccomp_number(arch, name);

	if (nr == -1) {
		return 0;
	}
	if (nr < 0 || p->n_calls == SECCOMP_MAX_CALLS) {
		fprintf(stderr, "seccomp-gen: %s: no such system call, or too many\n", name);
		return -1;
	}
	for (size_t i = 0; i < p->n_calls; i++) {
		if (p->calls[i].nr == (uint32_t)nr) {
			fprintf(stderr, "seccomp-gen: %s is decided twice\n", name);
			return -1;
		}
	}
	struct seccomp_call *call = &p->calls[p->n_calls++];
	*call = (struct seccomp_call){ .nr = (uint32_t)nr, .told = observed(name) };
	call->action = told(p, call, action);
	return add_rules(call, name, which);
}

static int by_number(const void *a, const void *b)
{
	const struct seccomp_call *x = a, *y = b;

	return x->nr < y->nr ? -1 : x->nr > y->nr;
}

/* Adds the calls that have rules but are in no group. If none of its rules matches, such a call
 * gets the filter's default. */
static int add_groupless(struct seccomp_policy *p, const struct seccomp_arch *arch,
                         struct seccomp_which which)
{
	for (size_t i = 0; i < SECCOMP_N_RULES; i++) {
		const struct seccomp_rule *r = &SECCOMP_RULES[i];
		int nr = seccomp_number(arch, r->name);
		bool found = nr == -1 || !belongs(r->profiles, r->reaches, which) ||
		             (r->action == SECCOMP_RET_USER_NOTIF && !which.observed);

		for (size_t k = 0; k < p->n_calls && !found; k++) {
			found = p->calls[k].nr == (uint32_t)nr;
		}
		if (!found && add_call(p, arch, r->name, p->fallback, which) != 0) {
			return -1;
		}
	}
	return 0;
}

int seccomp_resolve(const struct seccomp_arch *arch, struct seccomp_which which,
                    struct seccomp_policy *ret_policy)
{
	struct seccomp_policy *p = ret_policy;

	p->n_calls = 0;
	p->observed = which.observed;
	p->fallback = (which.profile & (IN_INIT | IN_BROKER | IN_MAKER)) != 0
	                      ? SECCOMP_RET_KILL_PROCESS
	                      : (SECCOMP_RET_ERRNO | ENOSYS);
	for (size_t i = 0; i < SECCOMP_N_GROUPS; i++) {
		const struct seccomp_group *g = &SECCOMP_GROUPS[i];
		const char *names = g->names;
		char name[MAX_NAME];

		while (belongs(g->profiles, g->reaches, which) && next_name(&names, name) > 0) {
			if (add_call(p, arch, name, g->action, which) != 0) {
				return -1;
			}
		}
	}
	if (add_groupless(p, arch, which) != 0) {
		return -1;
	}
	qsort(p->calls, p->n_calls, sizeof(p->calls[0]), by_number);
	return 0;
}

/* ---- decisions to BPF -------------------------------------------------- */

/* The call numbers from `first` up to the next range. */
struct range {
	uint32_t first;
	uint32_t action;
	const struct seccomp_call *call; /* NULL: no rules */
};

struct ranges {
	size_t n;
	struct range r[MAX_RANGES];
};

struct code {
	const struct seccomp_policy *policy;
	struct sock_filter *insns;
	size_t n;
	bool broken; /* the filter or a jump is too long */
};

static void add_range(struct ranges *rs, uint32_t first, uint32_t action,
                      const struct seccomp_call *call)
{
	struct range *last = rs->n > 0 ? &rs->r[rs->n - 1] : NULL;

	if (last != NULL && last->call == NULL && call == NULL && last->action == action) {
		return; /* the previous range has the same decision and includes this one */
	}
	rs->r[rs->n++] = (struct range){ first, action, call };
}

static void make_ranges(const struct seccomp_policy *p, bool x32, struct ranges *rs)
{
	uint32_t next = 0;

	rs->n = 0;
	for (size_t i = 0; i < p->n_calls; i++) {
		const struct seccomp_call *c = &p->calls[i];
		if (c->nr > next) {
			add_range(rs, next, p->fallback, NULL);
		}
		add_range(rs, c->nr, c->action, c->n_rules > 0 ? c : NULL);
		next = c->nr + 1;
	}
	add_range(rs, next, p->fallback, NULL);
	if (x32) {
		add_range(rs, SECCOMP_X32_BIT, foreign(p), NULL);
		/* A debugger sets the number to -1 to skip a call. */
		add_range(rs, 0xffffffffU, p->fallback, NULL);
	}
}

static size_t emit(struct code *c, uint16_t op, uint8_t jt, uint8_t jf, uint32_t k)
{
	if (c->n >= BPF_MAXINSNS) {
		c->broken = true;
		return 0;
	}
	c->insns[c->n] = (struct sock_filter){ op, jt, jf, k };
	return c->n++;
}

static void emit_return(struct code *c, uint32_t action)
{
	emit(c, BPF_RET | BPF_K, 0, 0, action);
}

/* Loads the masked argument that the condition compares. */
static void emit_load(struct code *c, const struct seccomp_cond *q)
{
	/* Both architectures are little-endian: the low half comes first. */
	uint32_t low = (uint32_t)(offsetof(struct seccomp_data, args) +
	                          sizeof(uint64_t) * (q->arg & ~UPPER_HALF) +
	                          ((q->arg & UPPER_HALF) != 0 ? sizeof(uint32_t) : 0));

	emit(c, BPF_LD | BPF_W | BPF_ABS, 0, 0, low);
	if (q->mask != ~0U) {
		emit(c, BPF_ALU | BPF_AND | BPF_K, 0, 0, q->mask);
	}
}

static bool same_cond(const struct seccomp_cond *x, const struct seccomp_cond *y)
{
	return x->arg == y->arg && x->differs == y->differs && x->mask == y->mask &&
	       x->value == y->value;
}

static bool has_more(const struct seccomp_rule *r, size_t depth)
{
	return depth < SECCOMP_MAX_CONDS && r->cond[depth].mask != 0;
}

/* Writes the code for rules of `call` whose first `depth` conditions are the same, and are true at
 * this point of the filter. Rules that also have the next condition in common share its test. If no
 * rule matches, the filter continues after this code. `loaded` is the condition whose argument the
 * filter has loaded last; NULL: unknown. */
static void emit_rules(struct code *c, const struct seccomp_call *call,
                       const struct seccomp_rule *const *rules, size_t n, size_t depth)
{
	const struct seccomp_cond *loaded = NULL;

	for (size_t i = 0; i < n;) {
		if (!has_more(rules[i], depth)) {
			emit_return(c, told(c->policy, call, rules[i]->action));
			return; /* the rules after this one are never reached */
		}
		const struct seccomp_cond *q = &rules[i]->cond[depth];
		size_t together = 1;
		while (i + together < n && same_cond(q, &rules[i + together]->cond[depth])) {
			together++;
		}
		if (loaded == NULL || loaded->arg != q->arg || loaded->mask != q->mask) {
			emit_load(c, q);
		}
		loaded = has_more(rules[i], depth + 1) ? NULL : q;
		size_t test = emit(c, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, q->value);
		emit_rules(c, call, rules + i, together, depth + 1);
		size_t past = c->n - test - 1;
		c->broken = c->broken || past > UINT8_MAX;
		*(q->differs ? &c->insns[test].jt : &c->insns[test].jf) = (uint8_t)past;
		i += together;
	}
}

static void emit_leaf(struct code *c, const struct range *r)
{
	if (r->call != NULL) {
		emit_rules(c, r->call, r->call->rules, r->call->n_rules, 0);
	}
	emit_return(c, r->action);
}

static void emit_tree(struct code *c, const struct range *r, size_t n)
{
	if (n == 1) {
		emit_leaf(c, r);
		return;
	}
	size_t left = n / 2;
	/* Write the left half once to get its size. If a conditional jump cannot span it, write it
	 * again with an unconditional jump. */
	size_t start = c->n;
	size_t test = emit(c, BPF_JMP | BPF_JGE | BPF_K, 0, 0, r[left].first);
	emit_tree(c, r, left);
	size_t size = c->n - start - 1;

	if (size <= 255) {
		c->insns[test].jt = (uint8_t)size;
	} else {
		c->n = start;
		emit(c, BPF_JMP | BPF_JGE | BPF_K, 0, 1, r[left].first);
		emit(c, BPF_JMP | BPF_JA, 0, 0, (uint32_t)size);
		emit_tree(c, r, left);
	}
	emit_tree(c, r + left, n - left);
}

static bool is_return(const struct sock_filter *f)
{
	return f->code == (BPF_RET | BPF_K);
}

/* `to` is the index of a return instruction, to which the instruction `jump` jumps. Returns the
 * index of a return with the same action that `jump` can reach: the last one that is already
 * needed, otherwise the last one. */
static size_t find_return(const struct code *c, const bool *needed, size_t jump, size_t to)
{
	size_t found = to;

	for (size_t at = jump + 1; at < c->n && at - jump - 1 <= UINT8_MAX; at++) {
		bool same = is_return(&c->insns[at]) && c->insns[at].k == c->insns[to].k;
		if (same && (needed[at] || !needed[found])) {
			found = at;
		}
	}
	return found;
}

/* Many leaves of the tree end with the same return, and a longer filter takes longer to load. So
 * each jump to a return gets a later return as its target, which several jumps share; the last jump
 * comes first. A return is reached only by jumps. So a return that lost its jumps is removed, which
 * also makes other jumps shorter. */
static void share_returns(struct code *c)
{
	static size_t to[BPF_MAXINSNS][2];
	static size_t place[BPF_MAXINSNS];
	static bool needed[BPF_MAXINSNS];
	size_t n = 0;

	for (size_t i = c->n; i-- > 0;) {
		const struct sock_filter *f = &c->insns[i];
		bool jump = BPF_CLASS(f->code) == BPF_JMP;
		bool always = f->code == (BPF_JMP | BPF_JA);
		needed[i] = !is_return(f);
		for (int k = 0; jump && k < 2; k++) {
			to[i][k] = i + 1 + (always ? f->k : k == 0 ? f->jt : f->jf);
			if (!always && is_return(&c->insns[to[i][k]])) {
				to[i][k] = find_return(c, needed, i, to[i][k]);
			}
			needed[to[i][k]] = true;
		}
	}
	for (size_t i = 0; i < c->n; i++) {
		place[i] = n;
		n += needed[i];
	}
	for (size_t i = 0; i < c->n; i++) {
		struct sock_filter f = c->insns[i];
		if (f.code == (BPF_JMP | BPF_JA)) {
			f.k = (uint32_t)(place[to[i][0]] - place[i] - 1);
		} else if (BPF_CLASS(f.code) == BPF_JMP) {
			f.jt = (uint8_t)(place[to[i][0]] - place[i] - 1);
			f.jf = (uint8_t)(place[to[i][1]] - place[i] - 1);
		}
		if (needed[i]) {
			c->insns[place[i]] = f;
		}
	}
	c->n = n;
}

int seccomp_compile(const struct seccomp_arch *arch, struct seccomp_which which,
                    struct sock_filter ret_insns[BPF_MAXINSNS], size_t *ret_n)
{
	static struct seccomp_policy policy;
	static struct ranges ranges;
	struct code c = { .insns = ret_insns, .policy = &policy };

	if (seccomp_resolve(arch, which, &policy) != 0) {
		return -1;
	}
	make_ranges(&policy, arch->x32, &ranges);
	emit(&c, BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, arch));
	emit(&c, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, arch->audit);
	emit_return(&c, foreign(&policy));
	emit(&c, BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr));
	emit_tree(&c, ranges.r, ranges.n);
	if (c.broken) {
		fprintf(stderr, "seccomp-gen: a filter or a jump in it is too long\n");
		return -1;
	}
	share_returns(&c);
	*ret_n = c.n;
	return 0;
}
