/* consent_show.c - see consent_show.h. */
#include "cli/consent_show.h"

#include <assert.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#include "base/amount.h"
#include "base/array.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "cli/ask.h"
#include "cli/say.h"
#include "cli/screen.h"
#include "consent/diff.h"
#include "policy/options.h"

void consent_view_done(struct consent_view *v)
{
	abilities_done(&v->abilities);
	string_list_done(&v->declined);
	skill_files_done(&v->files);
}

/* Adds to `declined` each of `items` that the plan withholds. v->abilities needs no change:
 * the plan was made without these items, so it has no abilities for them. */
static int take_out(struct consent_view *v, const struct string_list *items)
{
	for (size_t i = 0; items != NULL && i < items->n; i++) {
		bool out = ARRAY_HAS(withheld, v->plan->withheld, v->plan->n_withheld,
		                     strcmp(withheld->what, items->v[i]) == 0);
		if (out && string_list_add_once(&v->declined, items->v[i], MAX_REQUESTS) != 0) {
			return -1;
		}
	}
	return 0;
}

void consent_view_read(struct consent_view *v, const char *dir)
{
	assert(dir[0] == '/');
	*v = (struct consent_view){ .dir = dir };
	v->pinned = lock_files_read(dir, &v->files, &v->no_pin) == 0;
}

/* Marks the abilities that the owner adds now. */
static int mark_fresh(struct consent_view *v)
{
	for (size_t i = 0; v->fresh != NULL && i < v->fresh->n_allowed; i++) {
		const struct given *g = &v->fresh->allowed[i];
		auto_free char *item = given_item(g->option, g->value);
		if (item == NULL) {
			return -1;
		}
		for (size_t k = 0; k < v->abilities.n; k++) {
			v->abilities.v[k].fresh |= strcmp(v->abilities.v[k].asked, item) == 0;
		}
	}
	return 0;
}

int consent_view_make(struct consent_view *v, const struct ssb_plan *plan,
                      const struct ssb_options *options, const struct string_list *declined)
{
	assert(v->dir != NULL && v->plan == NULL && plan != NULL);
	v->plan = plan;
	return abilities_of(plan, &v->abilities) != 0 || mark_fresh(v) != 0 ||
	                       take_out(v, &options->withhold) != 0
	               ? -1
	               : take_out(v, declined);
}

int consent_view_decline(struct consent_view *v, size_t i)
{
	return string_list_add(&v->declined, v->abilities.v[i].asked, MAX_REQUESTS) == 0
	               ? abilities_drop(&v->abilities, i)
	               : -1;
}

static int give_all(const struct consent_view *v, const struct refusal *list, size_t n,
                    struct consent_input *in)
{
	for (size_t i = 0; i < n; i++) {
		if (list[i].value != NULL && !string_list_has(&v->declined, list[i].what) &&
		    consent_input_give(in, list[i].option, list[i].value) != 0) {
			return -1;
		}
	}
	return 0;
}

int consent_view_input(const struct consent_view *v, struct consent_input *in,
                       struct ssb_error *err)
{
	const struct ssb_plan *p = v->plan;
	int failed = give_all(v, p->refusals, p->n_refusals, in) != 0 ||
	             give_all(v, p->withheld, p->n_withheld, in) != 0;

	for (size_t i = 0; i < v->declined.n && failed == 0; i++) {
		failed = consent_input_decline(in, v->declined.v[i]);
	}
	return failed == 0
	               ? 0
	               : ssb_fail(err, SSB_E_LIMIT, 0, "approval",
	                          "the skill asks for more items than one approval can contain");
}

size_t consent_view_never(const struct consent_view *v)
{
	size_t n = 0;

	for (size_t i = 0; i < v->abilities.n; i++) {
		n += v->abilities.v[i].never ? 1 : 0;
	}
	return n;
}

static size_t count_columns(void)
{
	size_t n = screen_columns(STDERR_FILENO);

	return n > 0 && n < WORDS_COLUMNS ? n : WORDS_COLUMNS;
}

/* Writes `first`, then `text` (which comes from the skill) in quotes, then `after`. Long text
 * continues on further lines. */
static void put_quoted(struct buf *out, const char *first, const char *text, const char *after)
{
	auto_buf quoted = BUF(16UL * MAX_WORD_BYTES);

	words_quote(&quoted, text);
	buf_adds(&quoted, after);
	out->failed |= quoted.failed;
	if (!out->failed) {
		words_fold(out, first, quoted.data, count_columns());
	}
}

static void put_files(struct buf *out, const struct consent_view *v)
{
	char digest[DIGEST_TEXT];

	if (!v->pinned) {
		auto_buf why = BUF(SAY_MAX);

		words_plain(&why, v->no_pin.text);
		words_fold(out, "  files: ", why.failed ? "" : why.data, count_columns());
		return;
	}
	buf_addf(out, "  files: %zu, ", v->files.n);
	amount_bytes(out, v->files.bytes);
	buf_addf(out, "\n  %s\n", digest_text(v->files.tree, digest));
	if (!snapshot_fits(&v->files)) {
		words_fold(out, "  ! ", SNAPSHOT_TOO_LARGE, count_columns());
	}
}

/* An approval is for all scripts of the skill. */
static void put_scripts(struct buf *out, const struct ssb_plan *plan)
{
	auto_buf names = BUF(4UL * MAX_WORD_BYTES);

	if (plan->by_script) {
		buf_adds(out, "  runs the script that the caller names\n");
	}
	if (plan->scripts != NULL) {
		words_plain(&names, plan->scripts);
		out->failed |= names.failed;
		words_fold(out, "    ", names.failed ? "" : names.data, count_columns());
	}
}

static void put_worst(struct buf *out, const struct consent_view *v)
{
	bool bad = abilities_dangerous(&v->abilities) > 0;

	if (v->abilities.worst != NULL) {
		say_colour(out, STDERR_FILENO, bad ? SAY_RED : SAY_BOLD, "The worst of it:");
		buf_addc(out, '\n');
		words_fold(out, "  ", v->abilities.worst, count_columns());
	}
	if (bad) {
		buf_adds(out, "Items marked with ! are given only if you approve them.\n");
	}
}

static void put_abilities(struct buf *out, const struct consent_view *v, bool numbered)
{
	struct words_look look = { .color = say_coloured(STDERR_FILENO),
		                   .numbered = numbered,
		                   .columns = count_columns(),
		                   .most = numbered ? 0 : MAX_SHOWN_ITEMS };

	if (abilities_lines(out, &v->abilities, &look) > 0) {
		buf_adds(out, "    (skillsandbox inspect shows all)\n");
	}
	for (size_t i = 0; i < v->declined.n; i++) {
		put_quoted(out, "  (taken out) ", v->declined.v[i], "");
	}
}

void consent_show_abilities(const struct consent_view *v, bool numbered)
{
	auto_buf out = BUF(SAY_MAX);

	put_abilities(&out, v, numbered);
	(void)say_out(STDERR_FILENO, &out);
}

void consent_show(const struct consent_view *v, const char *title)
{
	auto_buf out = BUF(SAY_MAX), after = BUF(256);

	buf_addf(&after, " %s", title);
	put_quoted(&out, "skillsandbox: the skill ", v->plan->name, after.failed ? "" : after.data);
	put_quoted(&out, "  in ", v->dir, "");
	put_files(&out, v);
	put_scripts(&out, v->plan);
	buf_adds(&out, "When it runs, it can:\n");
	put_abilities(&out, v, false);
	put_worst(&out, v);
	(void)say_out(STDERR_FILENO, &out);
}

void consent_show_changes(const struct lock *before, const struct skill_files *now,
                          const struct ssb_plan *plan, const struct lock *fresh)
{
	AUTO(diff_done) struct diff d = { 0 };
	auto_buf out = BUF(SAY_MAX);

	if (diff_make(before, now, plan, &d) == 0) {
		diff_text(&out, &d, say_coloured(STDERR_FILENO), MAX_SHOWN_FILES);
		if (ARRAY_HAS(g, before->allowed, before->n_allowed,
		              fresh == NULL || !given_has(fresh->allowed, fresh->n_allowed,
		                                          g->option, g->value))) {
			words_fold(&out, "",
			           "The grants that you remembered for the skill (skillsandbox "
			           "allow --list) do not hold any more. If you approve the "
			           "skill again, they are offered to you again.",
			           count_columns());
		}
		(void)say_out(STDERR_FILENO, &out);
	}
}

/* The name comes from the system's user database and not from $USER, which any program can set. */
const char *consent_by(const struct owner *o, const char *through, char *out, size_t size)
{
	const struct passwd *pw = getpwuid(o->uid);

	if (pw != NULL) {
		snprintf(out, size, "%.64s %s", pw->pw_name, through);
	} else {
		snprintf(out, size, "uid %u %s", (unsigned)o->uid, through);
	}
	return out;
}
