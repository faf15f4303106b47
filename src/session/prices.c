/* prices.c - the prices of models: data/prices.yaml, which is built in, and the owner's
 * prices.yaml. A model in the owner's file replaces the built-in model of the same name, or is
 * added. The owner's file decides what a budget is worth, so it must belong to the owner, like
 * policy.yaml. */
#include "session/prices.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/diag.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/suggest.h"
#include "manifest/yaml_doc.h"
#include "os/file.h"
#include "policy/owner.h"
#include "policy/path.h"
#include "session/prices_yaml.h"
#include "session/policy_priv.h"

#define PRICED_TOKENS 1000000

static const struct price *find_price(const struct prices *p, const char *model)
{
	return ARRAY_FIND(e, p->v, p->n, strcmp(e->model, model) == 0);
}

/* ---- the owner's file ---------------------------------------------------- */

static const struct field PRICE_FIELDS[] = {
	{ "in", policy_read_money, offsetof(struct price, in), .missing = "write \"in: 2.50\"" },
	{ "out", policy_read_money, offsetof(struct price, out), .missing = "write \"out: 10\"" },
};
static const struct level PRICE_LEVEL = LEVEL("a price", PRICE_FIELDS);

static void read_model(struct ctx *c, const struct ynode *n, struct prices *p)
{
	struct price price = { 0 };
	struct field row = { n->key, level_read_map, 0, .level = &PRICE_LEVEL };
	char quoted[QUOTE_SIZE];

	if (n->key[0] == '\0' || strlen(n->key) >= sizeof(price.model) || p->n >= MAX_PRICES) {
		report_add(c->rep, SSB_ERROR, n->key_line, n->key_col, "",
		           p->n >= MAX_PRICES ? "%s is beyond the limit of 1024 models"
		                              : "%s is not a name of 1 to 127 bytes",
		           report_quote(quoted, n->key));
		return;
	}
	snprintf(price.model, sizeof(price.model), "%s", n->key);
	level_read_map(c, n, &row, &price);
	struct price *known = (struct price *)find_price(p, price.model);
	if (known != NULL) {
		*known = price;
		return;
	}
	if (!ARRAY_MORE(p->v, p->n)) {
		c->nomem = true;
		return;
	}
	p->v[p->n++] = price;
}

static void read_models(struct ctx *c, const struct ynode *n, const struct field *f, void *at)
{
	if (n->kind != YNODE_MAP) {
		level_read_map(c, n, f, at); /* reports the error */
		return;
	}
	for (const struct ynode *i = n->first; i != NULL; i = i->next) {
		read_model(c, i, at);
	}
}

static void read_default(struct ctx *c, const struct ynode *n, const struct field *f, void *at)
{
	struct prices *p = at;

	level_read_map(c, n, f, &p->fallback);
	p->has_default = true;
}

static const struct field TOP_FIELDS[] = {
	{ "models", read_models, 0, .level = &PRICE_LEVEL },
	{ "default", read_default, 0, .level = &PRICE_LEVEL },
};
static const struct level TOP_LEVEL = LEVEL("the top level", TOP_FIELDS);
static const struct level *const ALL_LEVELS[] = { &TOP_LEVEL, &PRICE_LEVEL };

static const struct level_file PRICES = { ALL_LEVELS, ARRAY_LEN(ALL_LEVELS),
	                                  "write models: or default:",
	                                  "the prices must be a mapping" };

static int load_prices(const struct owner *o, struct prices *p, struct ssb_diags *diags,
                       struct ssb_error *err)
{
	auto_free char *file = path_join(o->config_dir, "prices.yaml");
	auto_buf text = BUF(MAX_YAML_BYTES);

	if (file == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "prices", "out of memory");
	}
	int missing = owner_file_read(o, "price file", file, &text, err);
	if (missing != 0) {
		return missing > 0 ? 0 : -1;
	}
	return level_parse(&PRICES, file, text.data != NULL ? text.data : "", text.len, p, diags,
	                   err);
}

/* ---- prices -------------------------------------------------------------- */

int prices_load(const struct owner *o, struct prices *ret, struct ssb_diags *diags,
                struct ssb_error *err)
{
	AUTO(prices_done) struct prices p = { 0 };

	assert(diags != NULL);
	if (level_parse(&PRICES, "data/prices.yaml", PRICES_YAML, sizeof(PRICES_YAML) - 1, &p,
	                diags, err) < 0 ||
	    load_prices(o, &p, diags, err) < 0) {
		return -1;
	}
	*ret = p;
	p = (struct prices){ 0 };
	return 0;
}

void prices_done(struct prices *p)
{
	free(p->v);
	*p = (struct prices){ 0 };
}

static int unknown_model(const struct prices *p, const char *model, struct ssb_error *err)
{
	auto_free const char **names = calloc(p->n + 1, sizeof(names[0]));
	const char *near = NULL;
	char quoted[QUOTE_SIZE];

	for (size_t i = 0; names != NULL && i < p->n; i++) {
		names[i] = p->v[i].model;
	}
	if (names != NULL) {
		near = suggest(model, strlen(model), names, p->n, sizeof(names[0]));
	}
	return ssb_fail(err, SSB_E_NOT_FOUND, 0, "prices",
	                "the price of the model %s is not known; %s%s%sadd it, or a default, to "
	                "prices.yaml",
	                report_quote(quoted, model), near != NULL ? "did you mean " : "",
	                near != NULL ? near : "", near != NULL ? "? Else " : "");
}

int prices_cost(const struct prices *p, const char *model, uint64_t tokens_in, uint64_t tokens_out,
                micros *ret, struct ssb_error *err)
{
	__extension__ typedef unsigned __int128 wide;
	const struct price *price = find_price(p, model);

	if (price == NULL && !p->has_default) {
		return unknown_model(p, model, err);
	}
	price = price != NULL ? price : &p->fallback;
	/* Each product is at most 2^64 tokens x MAX_MICROS, so the sum is less than 2^116. */
	wide cost = (wide)tokens_in * (uint64_t)price->in + (wide)tokens_out * (uint64_t)price->out;
	cost = (cost + PRICED_TOKENS - 1) / PRICED_TOKENS;
	if (cost > (wide)MAX_MICROS) {
		return ssb_fail(err, SSB_E_USAGE, 0, "prices",
		                "%" PRIu64 " and %" PRIu64
		                " tokens cost more than 1000000000 dollars",
		                tokens_in, tokens_out);
	}
	*ret = (micros)cost;
	return 0;
}
