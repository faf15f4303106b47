/* test_allowed.c - the grants that an owner adds to a skill's approval: how they are stored, when
 * they are given, and when they stay. */
#include "lock_world.h"

#include "consent/lock_json.h"

#define AT "2026-11-20T00:00:00.000000Z"

static char SSH[] = "~/.ssh", HAVE[] = "HAVE", HOST[] = "api.example.com", NOTES[] = "~/notes";
static char at[] = AT, why[] = "a \"reason\"\n";

/* The plan of lock_world.h asks for the first two, but not for the others. */
static struct given ADDED[] = {
	{ SSB_OPT_READ, SSH, at, why },
	{ SSB_OPT_ENV, HAVE, at, why },
	{ SSB_OPT_NET, HOST, at, why },
	{ SSB_OPT_READ, NOTES, at, why },
};

static void give_added(size_t n, struct consent_terms terms)
{
	terms.allowed = ADDED;
	terms.n_allowed = n;
	give(&terms);
}

static void load(struct lock *ret)
{
	struct ssb_error err = { 0 };

	assert_int_equal(lock_load(&owner, skill, ret, &err), 0);
}

static bool has(const struct lock *l, size_t i)
{
	return given_has(l->allowed, l->n_allowed, ADDED[i].option, ADDED[i].value);
}

static void come_back(void **state)
{
	AUTO(lock_done) struct lock l = { 0 };
	AUTO(lock_done) struct lock again = { 0 };
	auto_buf text = BUF(MAX_LOCK_BYTES), twice = BUF(MAX_LOCK_BYTES);

	give_added(4, FOR_GOOD);
	load(&l);
	assert_int_equal(l.n_allowed, 4);
	assert_string_equal(l.allowed[2].value, HOST);
	assert_string_equal(l.allowed[2].at, AT);
	assert_string_equal(l.allowed[2].reason, why);
	/* What the owner adds is not stored a second time: it ends when the owner forgets it. */
	assert_int_equal(l.n_grants, 1);
	assert_string_equal(l.grants[0].value, "NOT");
	assert_int_equal(l.asked.n, 1);
	lock_write(&text, &l);
	assert_null(lock_parse(text.data, text.len, &again));
	lock_write(&twice, &again);
	assert_string_equal(text.data, twice.data);
}

/* Writes a valid approval with one change; returns what lock_parse() says about it. */
static const char *parse_with(const char *from, const char *to)
{
	AUTO(lock_done) struct lock l = { 0 };
	AUTO(lock_done) struct lock again = { 0 };
	auto_buf text = BUF(MAX_LOCK_BYTES), changed = BUF(MAX_LOCK_BYTES);

	load(&l);
	lock_write(&text, &l);
	const char *found = strstr(text.data, from);
	assert_non_null(found);
	buf_add(&changed, text.data, (size_t)(found - text.data));
	buf_adds(&changed, to);
	buf_adds(&changed, found + strlen(from));
	return lock_parse(changed.data, changed.len, &again);
}

/* An approval of an earlier version has no such member. Anything else is not an approval. */
static void are_read_strictly(void **state)
{
	static const struct {
		const char *from, *to;
	} SPOILED[] = {
		{ "\"at\": \"" AT "\",\n      \"reason\"", "\"reason\"" },
		{ "\"at\": \"" AT "\",\n      \"reason\"", "\"at\": \"soon\", \"reason\"" },
		{ "\"option\": \"net\"", "\"option\": \"profile\"" },
		{ "\"option\": \"net\"", "\"option\": \"x\"" },
		{ "\"value\": \"api.example.com\"", "\"value\": \"https://api.example.com\"" },
		{ "\"value\": \"api.example.com\"", "\"value\": 1" },
		{ "\"value\": \"api.example.com\"", "\"more\": 1, \"value\": \"api.example.com\"" },
		{ "\"allowed\": [", "\"allowed\": {}, \"x\": [" },
		{ "\"allowed\"", "\"allow\"" },
	};
	AUTO(lock_done) struct lock l = { 0 };

	give_added(4, FOR_GOOD);
	assert_null(parse_with("\"version\"", "\"version\"")); /* the control */
	for (size_t i = 0; i < ARRAY_LEN(SPOILED); i++) {
		assert_non_null(parse_with(SPOILED[i].from, SPOILED[i].to));
	}
	give(&FOR_GOOD);
	assert_int_equal(
	        lock_forget(&owner, skill, NULL, 0, &(size_t){ 0 }, &(struct ssb_error){ 0 }), 0);
	assert_null(parse_with("\"allowed\": [],", ""));
}

static void are_forgotten(void **state)
{
	struct ssb_error err = { 0 };
	size_t n = 0;

	assert_int_equal(lock_forget(&owner, skill, NULL, 0, &n, &err), -1);
	assert_int_equal(err.code, SSB_E_NOT_FOUND);
	give_added(4, FOR_GOOD);
	assert_int_equal(lock_forget(&owner, skill, &ADDED[1], 2, &n, &err), 0);
	assert_int_equal(n, 2);
	AUTO(lock_done) struct lock l = { 0 };
	load(&l);
	assert_true(has(&l, 0) && !has(&l, 1) && !has(&l, 2) && has(&l, 3));
	assert_string_equal(l.allowed[1].reason, why);
	assert_int_equal(lock_forget(&owner, skill, &ADDED[1], 1, &n, &err), 0);
	assert_int_equal(n, 0);
	assert_int_equal(lock_forget(&owner, skill, NULL, 0, &n, &err), 0);
	assert_int_equal(n, 2);
	assert_int_equal(look(), CONSENT_HOLDS);
}

/* Planning always gets them as requests. It gets them as grants only if the approval holds. */
static void are_given_only_if_it_holds(void **state)
{
	AUTO(consent_found_done) struct consent_found f = { 0 };
	struct ssb_error err = { 0 };

	give_added(2, FOR_GOOD);
	assert_int_equal(consent_look(&owner, skill, &f, &err), 0);
	for (int holds = 0; holds < 2; holds++) {
		AUTO(consent_input_done) struct consent_input w = { 0 };
		f.state = holds ? CONSENT_HOLDS : CONSENT_CHANGED;
		assert_int_equal(consent_by_approval(&owner, &f, false, &w, &err), 0);
		struct plan_consent c = consent_input_plan(&w);
		assert_int_equal(c.n_asked, 2);
		assert_int_equal(c.n_given[2], holds ? 2 : 0);
	}
}

/* Approves other files than before, and returns which of ADDED stay, as bits. */
static unsigned kept(const struct consent_terms *terms)
{
	AUTO(lock_done) struct lock l = { 0 };
	unsigned bits = 0;

	give_added(4, FOR_GOOD);
	put("more", "x");
	give(terms);
	assert_int_equal(unlink(in_skill("more")), 0);
	load(&l);
	for (size_t i = 0; i < ARRAY_LEN(ADDED); i++) {
		bits |= (unsigned)has(&l, i) << i;
	}
	return bits;
}

/* For other files, a grant stays only if the owner was shown it, as a request of the plan, and
 * agreed to it. An approval of single items does not include what the plan lacks. */
static void stay_if_shown(void **state)
{
	struct consent_terms terms = FOR_GOOD;
	char *list[] = { (char[]){ "environment HAVE" }, NULL };
	const struct string_list declined = { list, 1 };

	assert_int_equal(kept(&terms), 3);
	terms.some = true;
	assert_int_equal(kept(&terms), 0);
	terms.grants = &(struct given){ .option = SSB_OPT_READ, .value = SSH };
	terms.n_grants = 1;
	assert_int_equal(kept(&terms), 1);
	terms = FOR_GOOD;
	terms.declined = &declined;
	assert_int_equal(kept(&terms), 1);
}

/* What the owner declined stays declined, until the owner adds it by name. */
static void lift_what_was_declined(void **state)
{
	char *list[] = { (char[]){ "environment HAVE" }, (char[]){ "read ~/.ssh" }, NULL };
	const struct string_list declined = { list, 2 };
	struct consent_terms terms = FOR_GOOD;

	terms.declined = &declined;
	give(&terms);
	give_added(1, FOR_GOOD);
	AUTO(lock_done) struct lock l = { 0 };
	load(&l);
	assert_true(has(&l, 0));
	assert_int_equal(l.declined.n, 1);
	assert_string_equal(l.declined.v[0], "environment HAVE");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(come_back),     T(are_read_strictly),
		T(are_forgotten), T(are_given_only_if_it_holds),
		T(stay_if_shown), T(lift_what_was_declined),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
