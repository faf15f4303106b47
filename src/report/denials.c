/* denials.c - lists what a finished run was denied, for programs that embed the library
 * (ssb_denials_*).
 *
 * The texts are made from the run's record, as `skillsandbox why` makes its texts. So a
 * program that embeds the library and a person at a terminal read the same words. */
#include <limits.h>
#include <string.h>

#include "base/error.h"
#include "base/own.h"
#include "report/overview.h"
#include "report/why.h"
#include "skillsandbox.h"
#include "trace/trace_file.h"

struct ssb_denials {
	struct overview view; /* owns the texts */
	struct ssb_denial *list;
	size_t n;
};

/* Fills the list from d->view, which has violations before ordinary refusals. */
static int fill_list(struct ssb_denials *d, struct ssb_error *err)
{
	const struct overview *v = &d->view;

	d->list = calloc(v->n_items + 1, sizeof(d->list[0]));
	if (d->list == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "", "out of memory");
	}
	for (size_t n = 0; n < v->n_items; n++) {
		const struct overview_item *i = &v->items[n];
		if (i->denial != DENIAL_NOT) {
			d->list[d->n++] = (struct ssb_denial){
				.kind = i->kind,
				.what = i->text,
				.reason = i->reason,
				.why = why_reason(i),
				.remedy = i->remedy,
				.program = i->program,
				.count = i->count,
				.violation = i->denial == DENIAL_VIOLATION,
				.prevented = !i->let_through,
			};
		}
	}
	return 0;
}

/* Opens the record that belongs to the result's trace.json. */
static int open_record(const struct ssb_result *of, struct run_file *ret, struct ssb_error *err)
{
	char path[PATH_MAX];
	int len = snprintf(path, sizeof(path), "%s%s", of->trace_path,
	                   trace_file_more(of->trace_path));

	if (of->trace_path[0] == '\0' || len < 0 || (size_t)len >= sizeof(path)) {
		return ssb_fail(err, SSB_E_USAGE, 0, "denials", "the result names no record");
	}
	return run_file_open_path(ret, path, err);
}

int ssb_denials_read(const struct ssb_result *of, struct ssb_denials **ret_denials,
                     struct ssb_error *err)
{
	AUTO(run_file_done) struct run_file file = RUN_FILE_NONE;

	if (open_record(of, &file, err) != 0) {
		return -1;
	}
	struct ssb_denials *d = calloc(1, sizeof(*d));
	if (d == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "", "out of memory");
	}
	int failed = overview_read(&d->view, file.fd, "", err);
	if (failed == 0 && (!d->view.has_facts || strcmp(d->view.facts.id, of->run_id) != 0)) {
		failed = ssb_fail(err, SSB_E_NOT_FOUND, 0, "denials",
		                  "'%s' is not the record of the run %s", file.path, of->run_id);
	}
	if (failed != 0 || fill_list(d, err) != 0) {
		ssb_denials_free(d);
		return -1;
	}
	*ret_denials = d;
	return 0;
}

void ssb_denials_free(struct ssb_denials *d)
{
	if (d != NULL) {
		overview_done(&d->view);
		free(d->list);
		free(d);
	}
}

size_t ssb_denials_count(const struct ssb_denials *d)
{
	return d != NULL ? d->n : 0;
}

const struct ssb_denial *ssb_denials_get(const struct ssb_denials *d, size_t i)
{
	return i < ssb_denials_count(d) ? &d->list[i] : NULL;
}

int ssb_denials_complete(const struct ssb_denials *d)
{
	const struct overview *v = &d->view;

	return v->broken == NULL && v->facts.state == RUN_ENDED && v->dropped == 0 &&
	       v->left_out[GROUP_DENIED] == 0 && v->left_out[GROUP_REFUSED] == 0 &&
	       v->left_out[GROUP_FAILED] == 0 && !v->unobserved;
}
