/* remember.c - see remember.h. */
#include "cli/remember.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/stamp.h"
#include "base/visible.h"
#include "consent/words.h"
#include "policy/options.h"
#include "policy/path.h"
#include "report/why.h"

/* ---- the usual form of a value ------------------------------------------------------- */

static char *path_value(const struct owner *o, const struct given *g, struct ssb_error *err)
{
	char pretty[MAX_PATH_BYTES];
	auto_free char *path = path_expand(o, g->value);
	auto_free char *real = path != NULL && path[0] != '\0' ? path_real(path) : NULL;

	if (real == NULL || strlen(real) >= sizeof(pretty)) {
		ssb_fail(err, SSB_E_USAGE, 0, options_flag(g->option),
		         "'%.200s' cannot be resolved; name an existing file or directory",
		         g->value);
		return NULL;
	}
	if (g->option == SSB_OPT_READ && access(real, F_OK) != 0) {
		ssb_fail(err, SSB_E_USAGE, errno, options_flag(g->option), "'%.200s'", g->value);
		return NULL;
	}
	return strdup(path_pretty(o, real, pretty, sizeof(pretty)));
}

/* A name is written with its port only if the port is not 443, as in plan->requested. An address is
 * always written with its port, as in the offers of a plan. */
static char *host_value(const struct given *g, struct ssb_error *err)
{
	struct egress_rule rule;
	const char *wrong = options_net(g->value, &rule);
	char *value = NULL;

	if (wrong != NULL) {
		ssb_fail(err, SSB_E_USAGE, 0, options_flag(g->option), "'%.100s': %s", g->value,
		         wrong);
		return NULL;
	}
	auto_free char *host = rule.domain.s;
	const unsigned port = rule.ports[0];
	const bool literal = rule.kind == HOST_ADDRESS || rule.kind == HOST_CIDR;
	free(rule.ports);
	if (host_kind_is_sandbox(host)) {
		ssb_fail(err, SSB_E_USAGE, 0, options_flag(g->option), RULE_OF_SANDBOX, host, port);
		return NULL;
	}
	if (!literal && port == 443) {
		return steal_ptr(&host);
	}
	const char *form = strchr(host, ':') != NULL ? "[%s]:%u" : "%s:%u";
	return asprintf(&value, form, host, port) < 0 ? NULL : value;
}

static char *variable_value(const struct given *g, struct ssb_error *err)
{
	const char *wrong = strchr(g->value, '=') != NULL
	                            ? "only the name of a variable is remembered; its value comes "
	                              "from your environment at each run"
	                            : check_env_name(g->value);

	if (wrong != NULL) {
		ssb_fail(err, SSB_E_USAGE, 0, options_flag(g->option), "'%.100s': %s", g->value,
		         wrong);
		return NULL;
	}
	return strdup(g->value);
}

int remember_add(const struct owner *o, const struct given *g, struct lock *fresh,
                 struct ssb_error *err)
{
	struct stamp stamp = STAMP_NONE;
	struct timespec now;
	struct ssb_error why = { 0 };
	auto_free char *value = g->option == SSB_OPT_NET   ? host_value(g, &why)
	                        : g->option == SSB_OPT_ENV ? variable_value(g, &why)
	                                                   : path_value(o, g, &why);

	if (value == NULL) {
		*err = why;
		return why.code != SSB_OK ? -1 : ssb_fail(err, SSB_E_NOMEM, 0, "", "out of memory");
	}
	(void)clock_gettime(CLOCK_REALTIME, &now);
	const struct given one = { .option = g->option,
		                   .value = value,
		                   .at = (char *)(uintptr_t)stamp_text(&stamp, &now),
		                   .reason = g->reason };
	return lock_allow(fresh, &one) == 0
	               ? 0
	               : ssb_fail(err, SSB_E_LIMIT, 0, options_flag(g->option),
	                          "more than %d grants for one skill", MAX_GRANTS);
}

/* ---- what a run was denied ----------------------------------------------------------- */

/* Returns whether the owner may want to remember the item. The everyday refusals of hidden files
 * count only if nothing else was denied, as in the summary after a run. */
static bool is_offered(const struct overview *v, const struct overview_item *i)
{
	return overview_count_told(v) > 0
	               ? overview_is_told(i) && !reason_is_misfortune(i->why)
	               : i->denial == DENIAL_EVERYDAY && i->why == REASON_NOT_GRANTED;
}

/* Writes why an approval cannot remember the item. */
static void put_unremembered(struct buf *out, const struct overview_item *i,
                             const struct ssb_error *why)
{
	buf_addf(out, "  %s: ", i->text);
	if (why->code != SSB_OK) {
		visible_text(out, why->text, false);
	} else if (i->remedy[0] != '\0') {
		buf_addf(out, "an approval cannot remember this; it needs %s", i->remedy);
	} else {
		buf_adds(out, why_remedy(i));
	}
	buf_addc(out, '\n');
}

int remember_denied(const struct owner *o, const struct overview *v, const char *run_id,
                    struct lock *fresh, struct buf *why)
{
	char reason[64];

	snprintf(reason, sizeof(reason), "denied in run %.8s", run_id);
	for (size_t n = 0; n < v->n_items; n++) {
		const struct overview_item *i = &v->items[n];
		const struct given g = { .option = i->option, .value = i->value, .reason = reason };
		struct ssb_error err = { 0 };
		if (!is_offered(v, i) ||
		    (g.value != NULL && remember_add(o, &g, fresh, &err) == 0)) {
			continue;
		}
		if (err.code == SSB_E_NOMEM) {
			return -1;
		}
		if (why != NULL) {
			put_unremembered(why, i, &err);
		}
	}
	return 0;
}

/* ---- what an approval can give ------------------------------------------------------- */

/* Returns the refusal that no approval can lift; NULL: there is none. */
static const struct refusal *find_final(const struct ssb_plan *p, const char *item)
{
	return ARRAY_FIND(r, p->refusals, p->n_refusals,
	                  r->value == NULL && strcmp(r->what, item) == 0);
}

int remember_judge(const struct owner *o, const struct ssb_options *options, const char *dir,
                   struct lock *fresh, struct buf *why, struct ssb_error *err)
{
	AUTO(plan_freep) struct ssb_plan *plan = NULL;
	const struct plan_request q = { .owner = o,
		                        .options = options,
		                        .skill = dir,
		                        .consent = { .asked = fresh->allowed,
		                                     .n_asked = fresh->n_allowed } };

	if (plan_decide(&q, &plan, NULL, err) != 0) {
		return -1;
	}
	for (size_t i = fresh->n_allowed; i > 0; i--) {
		struct given *g = &fresh->allowed[i - 1];
		auto_free char *item = given_item(g->option, g->value);
		const struct refusal *r = item != NULL ? find_final(plan, item) : NULL;
		if (r == NULL) {
			continue;
		}
		if (why != NULL) {
			buf_adds(why, "  ");
			words_plain(why, item);
			buf_adds(why, ": ");
			words_plain(why, r->why);
			buf_addc(why, '\n');
		}
		const struct given last = fresh->allowed[--fresh->n_allowed];
		free(g->value);
		free(g->at);
		free(g->reason);
		*g = last;
	}
	return 0;
}
