/* words.c - says in words what a plan allows. */
#include "consent/words.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/limits.h"
#include "base/own.h"
#include "consent/words_priv.h"
#include "policy/path.h"
#include "policy/view.h"

#define WORST_NAMES 3 /* so many hosts or variables are named; the others are only counted */

static void ability_done(struct ability *a)
{
	free(a->asked);
	free(a->text);
	free(a->thing);
	free(a->why);
	*a = (struct ability){ 0 };
}

void abilities_done(struct abilities *a)
{
	for (size_t i = 0; i < a->n; i++) {
		ability_done(&a->v[i]);
	}
	free(a->v);
	free(a->worst);
	*a = (struct abilities){ 0 };
}

static const struct refusal *find_refusal(const struct refusal *v, size_t n, const char *what)
{
	return ARRAY_FIND(e, v, n, strcmp(e->what, what) == 0);
}

static bool is_known(const struct abilities *a, const char *asked)
{
	return ARRAY_HAS(e, a->v, a->n, strcmp(e->asked, asked) == 0);
}

/* Returns true if not even the owner can allow the request. Several refusals may be about one
 * request: it is enough that one of them cannot be lifted. */
static bool is_final(const struct ssb_plan *p, const char *what)
{
	return ARRAY_HAS(refusal, p->refusals, p->n_refusals,
	                 strcmp(refusal->what, what) == 0 && refusal->value == NULL);
}

static bool is_home(const struct ssb_plan *p, const char *path)
{
	return path[0] == '~' || (p->home != NULL && path_beneath(path, p->home) != NULL);
}

static enum ability_rank rank_of(const struct ssb_plan *p, const struct ability *a)
{
	static const enum ability_rank RANKS[] = {
		[ABILITY_NETWORK] = RANK_NETWORK,   [ABILITY_READ] = RANK_READ,
		[ABILITY_WRITE] = RANK_WRITE,       [ABILITY_ENV] = RANK_ENV,
		[ABILITY_PROGRAMS] = RANK_PROGRAMS, [ABILITY_LIMIT] = RANK_LIMIT,
		[ABILITY_OTHER] = RANK_OTHER,
	};

	if (a->dangerous) {
		return RANK_DANGEROUS;
	}
	if (a->kind == ABILITY_ENV && a->secret) {
		return RANK_SECRET;
	}
	if (a->kind == ABILITY_READ) {
		return a->secret || is_home(p, a->value) ? RANK_PERSONAL
		       : view_is_system(a->value) || path_beneath(a->value, "/etc") != NULL
		               ? RANK_SYSTEM
		               : RANK_READ;
	}
	return RANKS[a->kind];
}

static int add_ability(struct abilities *a, const struct ssb_plan *p, const char *asked,
                       const struct refusal *r)
{
	if (!ARRAY_MORE(a->v, a->n)) {
		return -1;
	}
	struct ability *to = &a->v[a->n];
	*to = (struct ability){ .asked = strdup(asked),
		                .dangerous = r != NULL,
		                .never = is_final(p, asked) };
	if (to->asked == NULL || words_say(p, r, to) != 0) {
		ability_done(to);
		return -1;
	}
	to->rank = rank_of(p, to);
	a->n++;
	return 0;
}

/* Adds the manifest's requests as abilities. Each says whether it was refused. */
static int add_requested(struct abilities *a, const struct ssb_plan *p)
{
	for (size_t i = 0; i < p->requested.n; i++) {
		const char *asked = p->requested.v[i];
		const struct refusal *out = find_refusal(p->withheld, p->n_withheld, asked);
		if (is_known(a, asked) || (out != NULL && out->value == NULL)) {
			continue; /* the owner declined it */
		}
		const struct refusal *r = find_refusal(p->refusals, p->n_refusals, asked);
		if (add_ability(a, p, asked, r != NULL ? r : out) != 0) {
			return -1;
		}
	}
	return 0;
}

/* Adds refused items that are in no list of the manifest, such as a profile. */
static int add_others(struct abilities *a, const struct ssb_plan *p)
{
	const struct refusal *v[] = { p->refusals, p->withheld };
	const size_t n[] = { p->n_refusals, p->n_withheld };

	for (size_t k = 0; k < ARRAY_LEN(v); k++) {
		for (size_t i = 0; i < n[k]; i++) {
			bool out = k == 1 && v[k][i].value == NULL;
			if (!out && !is_known(a, v[k][i].what) &&
			    add_ability(a, p, v[k][i].what, &v[k][i]) != 0) {
				return -1;
			}
		}
	}
	return 0;
}

/* Sorts by rank, and within a rank in the order of the requests. */
static int sort_abilities(struct abilities *a)
{
	struct ability *v = calloc(a->n + 1, sizeof(*v));
	size_t n = 0;

	if (v == NULL) {
		return -1;
	}
	for (int rank = 0; rank < RANK_COUNT; rank++) {
		for (size_t i = 0; i < a->n; i++) {
			if (a->v[i].rank == (enum ability_rank)rank) {
				v[n++] = a->v[i];
			}
		}
	}
	free(a->v);
	a->v = v;
	return 0;
}

/* ---- the worst ----------------------------------------------------------- */

/* Returns the first ability of this kind whose `secret` is as given. Abilities that cannot be
 * allowed do not count. */
static const struct ability *pick_ability(const struct abilities *a, enum ability_kind kind,
                                          bool secret)
{
	return ARRAY_FIND(e, a->v, a->n, e->kind == kind && e->secret == secret && !e->never);
}

/* Returns the first secret ability of this kind or, if there is none, the first one that is not
 * secret. */
static const struct ability *pick_any(const struct abilities *a, enum ability_kind kind)
{
	const struct ability *found = pick_ability(a, kind, true);

	return found != NULL ? found : pick_ability(a, kind, false);
}

enum which_things { ALL_THINGS, SECRET_THINGS };

/* Writes "a.example, b.example and c.example (and 2 more)". Variables are named only if they are
 * secret. */
static void add_some(struct buf *out, const struct abilities *a, enum ability_kind kind,
                     enum which_things which)
{
	size_t n = 0, told = 0;

	for (size_t turn = 0; turn < 2; turn++) {
		for (size_t i = 0; i < a->n; i++) {
			const struct ability *v = &a->v[i];
			bool counts = v->kind == kind && !v->never &&
			              (v->secret || (which == ALL_THINGS && kind != ABILITY_ENV));
			n += counts && turn == 0 ? 1 : 0;
			if (counts && turn == 1 && told < WORST_NAMES) {
				const char *before = told == 0 ? ""
				                     : told + 1 == n || told + 1 == WORST_NAMES
				                             ? " and "
				                             : ", ";
				buf_addf(out, "%s%s", before, v->thing);
				told++;
			}
		}
	}
	if (n > told) {
		buf_addf(out, " (and %zu more)", n - told);
	}
}

static void add_things(struct buf *out, const struct abilities *a, enum ability_kind kind)
{
	add_some(out, a, kind, ALL_THINGS);
}

static void say_worst_with_network(struct buf *out, const struct abilities *a)
{
	const struct ability *secret = pick_ability(a, ABILITY_READ, true);
	secret = secret != NULL ? secret : pick_ability(a, ABILITY_WRITE, true);
	const struct ability *key = pick_ability(a, ABILITY_ENV, true);
	const struct ability *read = pick_ability(a, ABILITY_READ, false);
	const struct ability *write = pick_any(a, ABILITY_WRITE);
	read = read != NULL ? read : pick_ability(a, ABILITY_WRITE, false);

	if (secret != NULL) {
		buf_adds(out, "it can read ");
		add_some(out, a, secret->kind, SECRET_THINGS);
		buf_adds(out, " and send them");
		if (key != NULL) {
			buf_adds(out, ", with what is in ");
			add_things(out, a, ABILITY_ENV);
			buf_addc(out, ',');
		}
		buf_adds(out, " to ");
	} else if (key != NULL) {
		buf_adds(out, "it can send what is in ");
		add_things(out, a, ABILITY_ENV);
		if (read != NULL) {
			buf_adds(out, ", and what it reads in ");
			add_things(out, a, read->kind);
			buf_addc(out, ',');
		}
		buf_adds(out, " to ");
	} else if (read != NULL) {
		buf_adds(out, "it can read ");
		add_things(out, a, read->kind);
		buf_adds(out, " and send what it reads to ");
	} else {
		buf_adds(out, "it can send its arguments and its input to ");
	}
	add_things(out, a, ABILITY_NETWORK);
	if (write != NULL) {
		buf_adds(out, ", and store what it receives from there in ");
		add_things(out, a, ABILITY_WRITE);
	}
}

static void say_worst_alone(struct buf *out, const struct abilities *a)
{
	const struct ability *write = pick_any(a, ABILITY_WRITE);
	const struct ability *read = pick_any(a, ABILITY_READ);
	const struct ability *other = pick_any(a, ABILITY_OTHER);
	other = other != NULL ? other : pick_any(a, ABILITY_ENV);
	other = other != NULL ? other : pick_any(a, ABILITY_PROGRAMS);
	other = other != NULL ? other : pick_any(a, ABILITY_LIMIT);

	if (write == NULL && read == NULL && other == NULL) {
		return;
	}
	if (write != NULL) {
		buf_adds(out, "it can change or delete ");
		add_things(out, a, ABILITY_WRITE);
	}
	if (read != NULL) {
		buf_adds(out, write != NULL ? ", and read " : "it can read ");
		add_things(out, a, ABILITY_READ);
	} else if (write == NULL) {
		buf_addf(out, "it can use %s", other->thing);
	}
	buf_adds(out, "; it cannot send anything anywhere");
}

/* Sets a->worst for the abilities that are left. Returns -1 if out of memory. */
static int set_worst(struct abilities *a)
{
	auto_buf out = BUF(MAX_SENTENCE);

	if (pick_any(a, ABILITY_NETWORK) != NULL) {
		say_worst_with_network(&out, a);
	} else {
		say_worst_alone(&out, a);
	}
	free(a->worst);
	a->worst = NULL;
	if (out.len == 0 && !out.failed) {
		return 0;
	}
	a->worst = buf_steal(&out);
	return a->worst != NULL ? 0 : -1;
}

/* ---- the list ------------------------------------------------------------ */

int abilities_of(const struct ssb_plan *p, struct abilities *ret)
{
	AUTO(abilities_done) struct abilities a = { 0 };

	if (add_requested(&a, p) != 0 || add_others(&a, p) != 0 || sort_abilities(&a) != 0 ||
	    set_worst(&a) != 0) {
		return -1;
	}
	*ret = a;
	a = (struct abilities){ 0 };
	return 0;
}

int abilities_drop(struct abilities *a, size_t i)
{
	assert(i < a->n);
	ability_done(&a->v[i]);
	memmove(a->v + i, a->v + i + 1, (--a->n - i) * sizeof(*a->v));
	return set_worst(a);
}

size_t abilities_dangerous(const struct abilities *a)
{
	size_t n = 0;

	while (n < a->n && a->v[n].dangerous) {
		n++;
	}
	return n;
}

/* ---- lines --------------------------------------------------------------- */

static void add_mark(struct buf *out, const struct ability *a, size_t number,
                     const struct words_look *look)
{
	if (look->numbered) {
		buf_addf(out, "%s%3zu. ", a->dangerous ? "!" : " ", number);
	} else {
		buf_adds(out, a->dangerous ? "  ! " : "  - ");
	}
}

static void add_line(struct buf *out, const struct ability *a, size_t number,
                     const struct words_look *look)
{
	auto_buf text = BUF(MAX_SCALAR_BYTES * 4UL), first = BUF(64);
	bool red = look->color && a->dangerous;

	add_mark(&first, a, number, look);
	buf_addf(&text, "%s%s", a->text, a->fresh ? " (new)" : "");
	if (a->why != NULL) {
		buf_addf(&text, " - %s", a->why);
	}
	if (a->never) {
		buf_adds(&text, " (this cannot be approved)");
	}
	out->failed |= text.failed || first.failed;
	buf_adds(out, red ? "\033[31m" : "");
	words_fold(out, out->failed ? "" : first.data, out->failed ? "" : text.data,
	           look->columns > 0 ? look->columns : WORDS_COLUMNS);
	buf_adds(out, red ? "\033[0m" : "");
}

size_t abilities_lines(struct buf *out, const struct abilities *a, const struct words_look *look)
{
	size_t dull = 0, left = 0;

	for (size_t i = 0; i < a->n; i++) {
		dull += a->v[i].dangerous ? 0 : 1;
		if (look->most == 0 || dull <= look->most || a->v[i].rank < RANK_READ) {
			add_line(out, &a->v[i], i + 1, look);
		} else {
			left++;
		}
	}
	if (left > 0) {
		buf_addf(out, "  - and read %zu more places, none of them in your home\n", left);
	}
	if (a->n == 0) {
		buf_adds(out, "  - use nothing except its own directory\n");
	}
	return left;
}
