/* cmd_why.c - explains each thing that a run was denied: what was tried, how often, by which rule,
 * and the exact change that would allow it. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "trace/trace_file.h"
#include "base/json.h"
#include "base/own.h"
#include "cli/cli_record.h"
#include "cli/remember.h"
#include "cli/say.h"
#include "cli/screen.h"
#include "report/overview.h"
#include "report/why.h"

#define SUMMARY_ITEMS 5

static void put_row(struct buf *out, const char *name, const char *text)
{
	if (text != NULL && text[0] != '\0') {
		buf_addf(out, "   %-8s %s\n", name, text);
	}
}

static void put_item(struct buf *out, size_t number, const struct overview_item *i)
{
	char times[48];

	buf_addf(out, "%zu. ", number);
	say_colour(out, STDOUT_FILENO, SAY_BOLD, i->text);
	buf_addc(out, '\n');
	snprintf(times, sizeof(times), "%" PRIu64 " time%s", i->count, i->count == 1 ? "" : "s");
	put_row(out, "tried", times);
	put_row(out, "by", i->program);
	/* What the plan allows, and what failed all the same, was not denied. */
	bool failed = reason_is_misfortune(i->why);
	buf_addf(out, "   %-8s %s", failed ? "failed" : "denied", why_reason(i));
	if (i->reason[0] != '\0') {
		buf_addf(out, " (%s)", i->reason);
	}
	if (i->error[0] != '\0') {
		buf_addf(out, "; the program got %s", i->error);
	}
	buf_addc(out, '\n');
	put_row(out, "rule", i->rule);
	if (i->let_through) {
		put_row(out, "but", "it was NOT prevented");
	}
	if (!failed && i->remedy[0] == '\0') {
		buf_addf(out, "   %s\n", why_remedy(i));
	} else {
		put_row(out, "to allow", i->remedy);
	}
}

static void put_json_list(struct buf *out, const struct overview *v)
{
	struct json j = JSON_TO(out, true);

	why_json(&j, v);
	buf_addc(out, '\n');
}

/* Returns the text for a record without denials. */
static const char *text_without_denials(const struct overview *v)
{
	if (v->unobserved) {
		return "it is not known what was denied: the run was not observed\n";
	}
	if (v->has_facts && v->facts.state == RUN_LIVE) {
		return "nothing was denied yet: the run is running\n";
	}
	return !v->has_facts || v->facts.state == RUN_ENDED
	               ? "nothing was denied\n"
	               : "nothing was denied up to the end of this incomplete record\n";
}

static void put_short(struct buf *out, int fd, const struct overview_item *i)
{
	buf_addf(out, "  %" PRIu64 " x ", i->count);
	say_colour(out, fd, i->denial == DENIAL_EVERYDAY ? SAY_PLAIN : SAY_RED, i->text);
	if (i->reason[0] != '\0') {
		buf_addf(out, " [%s]", i->reason);
	}
	buf_addf(out, "%s\n", i->let_through ? " NOT PREVENTED" : "");
	if (i->remedy[0] != '\0') {
		buf_addf(out, "      to allow: %s\n", i->remedy);
	}
}

static size_t count_kind(const struct overview *v, enum denial_kind kind)
{
	size_t n = 0;

	for (size_t i = 0; i < v->n_items; i++) {
		n += v->items[i].denial == kind;
	}
	return n;
}

/* Prints what programs try in normal use, after everything else: such a denial seldom explains a
 * failure, but it can. */
static void put_everyday(struct buf *out, const struct overview *v, size_t others)
{
	if (count_kind(v, DENIAL_EVERYDAY) == 0) {
		return;
	}
	buf_adds(out, others > 0 ? "\nalso refused; most programs try such things and work without "
	                           "them:\n"
	                         : "refused, but most programs try such things and work without "
	                           "them:\n");
	for (size_t n = 0; n < v->n_items; n++) {
		if (v->items[n].denial == DENIAL_EVERYDAY) {
			put_short(out, STDOUT_FILENO, &v->items[n]);
		}
	}
}

static void put_limits(struct buf *out, const struct overview *v, const char *before)
{
	for (size_t i = 0; i < v->n_items; i++) {
		if (v->items[i].denial == DENIAL_LIMIT) {
			buf_adds(out, before);
			why_limit(out, &v->items[i]);
			buf_addc(out, '\n');
		}
	}
}

static void put_text(struct buf *out, const struct overview *v)
{
	size_t number = 0;

	for (size_t n = 0; n < v->n_items; n++) {
		if (overview_is_told(&v->items[n])) {
			buf_adds(out, number > 0 ? "\n" : "");
			put_item(out, ++number, &v->items[n]);
		}
	}
	bool limits = count_kind(v, DENIAL_LIMIT) > 0;
	if (number + count_kind(v, DENIAL_EVERYDAY) == 0 && !limits) {
		buf_adds(out, text_without_denials(v));
	}
	if (limits) {
		buf_adds(out, number > 0 ? "\nlimits that were reached:\n"
		                         : "limits that were reached:\n");
		put_limits(out, v, "  ");
	}
	put_everyday(out, v, number + limits);
	if (v->unexplained > 0) {
		buf_addf(out, "\n%" PRIu64 " more attempts are in the record and not shown here\n",
		         v->unexplained);
	}
	if (v->dropped > 0) {
		buf_addf(out, "\n%" PRId64 " events were too many to be recorded\n", v->dropped);
	}
}

int cmd_why(struct request *r)
{
	AUTO(cli_record_done) struct record_request q = RECORD_REQUEST_NONE;
	AUTO(overview_done) struct overview v = { 0 };
	struct ssb_error err = { 0 };
	auto_buf out = BUF(8 * SAY_MAX);
	int status = cli_record_open(r, NULL, &q);
	if (status != EXIT_FINE) {
		return status;
	}
	if (overview_read(&v, q.file.fd, q.file.id, &err) != 0) {
		return exit_status_told(&err);
	}
	(request_has(r, FLAG_JSON) ? put_json_list : put_text)(&out, &v);
	status = (request_has(r, FLAG_JSON) ? say_out : screen_text)(STDOUT_FILENO, &out);
	if (v.broken != NULL) {
		say_errorf("the record is damaged (%s); see 'audit verify'", v.broken);
		return EXIT_FINDINGS;
	}
	return status != EXIT_FINE ? status : cli_record_doubt(r, &q);
}

static void put_summary(struct buf *out, const struct overview *v)
{
	size_t different = overview_count_told(v);
	size_t shown = 0;

	for (size_t n = 0; n < v->n_items && shown < SUMMARY_ITEMS; n++) {
		if (overview_is_told(&v->items[n])) {
			put_short(out, STDERR_FILENO, &v->items[n]);
			shown++;
		}
	}
	if (shown < different) {
		buf_addf(out, "  and %s%zu more\n", v->unexplained > 0 ? "more than " : "",
		         different - shown);
	}
}

/* Returns whether the plan allows everything that is told, and it failed all the same. */
static bool only_failed(const struct overview *v)
{
	for (size_t n = 0; n < v->n_items; n++) {
		const struct overview_item *i = &v->items[n];
		if (overview_is_told(i) && !reason_is_misfortune(i->why)) {
			return false;
		}
	}
	return true;
}

/* Names the hidden files among the everyday refusals: nothing else was denied, so one of them may
 * be why the program failed. */
static bool put_hidden(struct buf *out, const struct overview *v)
{
	size_t shown = 0;

	for (size_t n = 0; n < v->n_items && shown < SUMMARY_ITEMS; n++) {
		const struct overview_item *i = &v->items[n];
		if (i->denial == DENIAL_EVERYDAY && i->why == REASON_NOT_GRANTED) {
			buf_addf(out, "%s%s", shown > 0 ? ", " : "not allowed: ", i->text);
			shown++;
		}
	}
	buf_adds(out, shown > 0 ? "\n" : "");
	return shown > 0;
}

/* Returns false if there is nothing to print. */
static bool put_denied(struct buf *out, const struct overview *v)
{
	if (overview_count_told(v) == 0) {
		return put_hidden(out, v);
	}
	say_colour(out, STDERR_FILENO, SAY_YELLOW, only_failed(v) ? "failed" : "denied");
	buf_adds(out, ":\n");
	put_summary(out, v);
	return true;
}

/* Names the command that remembers the remedies, if at least one of them can be remembered. */
static void put_remember(struct buf *out, const struct owner *o, const struct overview *v, int fd,
                         const char *run_id)
{
	AUTO(lock_done) struct lock fresh = { 0 };
	struct ssb_error none = { 0 };
	auto_free char *dir = run_facts_skill_dir(fd);

	if (dir != NULL && remember_denied(o, v, run_id, &fresh, NULL) == 0 &&
	    remember_judge(o, NULL, dir, &fresh, NULL, &none) == 0 && fresh.n_allowed > 0) {
		buf_addf(out, "  to remember these: skillsandbox allow --last %.8s\n", run_id);
	}
}

bool cli_record_summary(const struct owner *o, const char *trace_path, const char *run_id,
                        bool denials)
{
	AUTO(run_file_done) struct run_file file = RUN_FILE_NONE;
	AUTO(overview_done) struct overview v = { 0 };
	struct ssb_error err = { 0 };
	char path[PATH_MAX];
	auto_buf out = BUF(SAY_MAX);

	/* `trace_path` may be the path of trace.json. The record is then the file beside
	 * trace.json. */
	if (snprintf(path, sizeof(path), "%s%s", trace_path, trace_file_more(trace_path)) >=
	    (int)sizeof(path)) {
		return false;
	}
	if (run_file_open_path(&file, path, &err) != 0 ||
	    overview_read(&v, file.fd, run_id, &err) != 0) {
		return false;
	}
	put_limits(&out, &v, "skillsandbox: ");
	size_t end = out.len;
	buf_adds(&out, "skillsandbox: ");
	if (!denials || !put_denied(&out, &v)) {
		out.len = end;
		out.data[end] = '\0';
	}
	if (out.len == 0) {
		return false;
	}
	if (denials) {
		bool option = strstr(out.data, "to allow: --") != NULL;
		buf_addf(&out, "  details: skillsandbox why %.8s%s\n", run_id,
		         option ? "; options go directly after 'skillsandbox run'" : "");
		if (v.n_classes == 0) { /* do not offer to grant what looks like an attack */
			put_remember(&out, o, &v, file.fd, run_id);
		}
	}
	(void)screen_text(STDERR_FILENO, &out);
	return true;
}
