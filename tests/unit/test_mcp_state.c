/* test_mcp_state.c - sealed states: each is valid once, for its purpose, for a limited time. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "unit.h"
#include "base/ct.h"
#include "base/limits.h"
#include "base/own.h"
#include "mcp/state.h"

static const struct state_binding OF = { "tools/call", "token", { 1, 2, 3 } };

/* A clock that moves only if a test changes moved_s. */
static time_t moved_s;

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
	(void)clock;
	*ret = (struct timespec){ .tv_sec = 1000 + moved_s };
	return 0;
}

static void states_done(struct state_store **s)
{
	state_store_free(*s);
}

static char *seal(struct state_store *s, const struct state_binding *of, const char *text)
{
	struct buf out;

	buf_init(&out, 1 << 20);
	assert_int_equal(state_seal(s, of, text, &out), 0);
	return buf_steal(&out);
}

/* Opens the sealed state and returns the verdict. Fails the test unless the opened text is `text`,
 * or empty if the state is invalid. */
static enum state_verdict opened(struct state_store *s, const struct state_binding *of,
                                 const char *sealed, const char *text)
{
	auto_buf ret = BUF(1 << 20);

	enum state_verdict v = state_open(s, of, sealed, &ret);
	if (v == STATE_GOOD) {
		assert_string_equal(ret.data != NULL ? ret.data : "", text);
	} else {
		assert_int_equal(ret.len, 0);
	}
	return v;
}

static void test_round_trip_once(void **state)
{
	static const char *const TEXTS[] = { "", "x", "{\"asked\":[\"network\"]}", "\xff\n\x01" };
	AUTO(states_done) struct state_store *s = state_store_new(STATE_TTL_MS);

	for (size_t i = 0; i < ARRAY_LEN(TEXTS); i++) {
		auto_free char *one = seal(s, &OF, TEXTS[i]);
		auto_free char *two = seal(s, &OF, TEXTS[i]);
		assert_string_not_equal(one, two);
		assert_int_equal(opened(s, &OF, one, TEXTS[i]), STATE_GOOD);
		assert_int_equal(opened(s, &OF, one, TEXTS[i]), STATE_USED);
		assert_int_equal(opened(s, &OF, two, TEXTS[i]), STATE_GOOD);
		assert_int_equal(opened(s, &OF, two, TEXTS[i]), STATE_USED);
	}
}

static void test_every_byte_counts(void **state)
{
	AUTO(states_done) struct state_store *s = state_store_new(STATE_TTL_MS);
	auto_free char *sealed = seal(s, &OF, "allowed: nothing");
	size_t len = strlen(sealed);

	for (size_t i = 0; i < len; i++) {
		char was = sealed[i];
		for (const char *c = "0f9aAF -\n\x80"; *c != '\0'; c++) {
			sealed[i] = *c;
			if (*c != was) {
				assert_int_equal(opened(s, &OF, sealed, ""), STATE_FORGED);
			}
		}
		sealed[i] = '\0';
		assert_int_equal(opened(s, &OF, sealed, ""), STATE_FORGED);
		sealed[i] = was;
	}
	auto_free char *longer = calloc(1, len + 3);
	memcpy(longer, sealed, len);
	memcpy(longer + len, "00", 2);
	assert_int_equal(opened(s, &OF, longer, ""), STATE_FORGED);
	/* The failed attempts above must not have used up the valid state. */
	assert_int_equal(opened(s, &OF, sealed, "allowed: nothing"), STATE_GOOD);
}

static void test_bound_to_what_it_was_made_for(void **state)
{
	static const struct state_binding OTHERS[] = {
		{ "tools/lis", "token", { 1, 2, 3 } },   { "tools/call", "token2", { 1, 2, 3 } },
		{ "tools/call", "", { 1, 2, 3 } },       { "tools/call", "token", { 1, 2, 4 } },
		{ "tools/callt", "oken", { 1, 2, 3 } },  { "", "tools/calltoken", { 1, 2, 3 } },
		{ "tools/call", "token", { [31] = 1 } },
	};
	AUTO(states_done) struct state_store *s = state_store_new(STATE_TTL_MS);
	auto_free char *sealed = seal(s, &OF, "t");

	for (size_t i = 0; i < ARRAY_LEN(OTHERS); i++) {
		assert_int_equal(opened(s, &OTHERS[i], sealed, ""), STATE_FORGED);
	}
	AUTO(states_done) struct state_store *other = state_store_new(STATE_TTL_MS);
	assert_int_equal(opened(other, &OF, sealed, ""), STATE_FORGED);
	assert_int_equal(opened(s, &OF, sealed, "t"), STATE_GOOD);
}

static void test_expires(void **state)
{
	AUTO(states_done) struct state_store *s = state_store_new(2500);
	auto_free char *early = seal(s, &OF, "t");
	auto_free char *late = seal(s, &OF, "t");

	assert_int_equal(opened(s, &OF, early, "t"), STATE_GOOD);
	moved_s += 3;
	assert_int_equal(opened(s, &OF, late, "t"), STATE_OLD);
	assert_int_equal(opened(s, &OF, late, "t"), STATE_USED);
}

static void test_oldest_is_forgotten(void **state)
{
	AUTO(states_done) struct state_store *s = state_store_new(STATE_TTL_MS);
	auto_free char *first = seal(s, &OF, "1");
	auto_free char *second = seal(s, &OF, "2");

	for (size_t i = 2; i < MAX_MCP_STATES; i++) {
		free(seal(s, &OF, "x"));
	}
	auto_free char *past = seal(s, &OF, "past the cap");
	assert_int_equal(opened(s, &OF, first, ""), STATE_USED);
	assert_int_equal(opened(s, &OF, second, "2"), STATE_GOOD);
	assert_int_equal(opened(s, &OF, past, "past the cap"), STATE_GOOD);
}

/* However many states one client gets, the states of another client stay valid. */
static void test_each_client_has_a_share(void **state)
{
	static const struct state_binding OTHER = { .method = "tools/call", .principal = "other" };
	AUTO(states_done) struct state_store *s = state_store_new(STATE_TTL_MS);
	auto_free char *first = seal(s, &OF, "1");
	auto_free char *others = seal(s, &OTHER, "2");

	for (size_t i = 0; i < 2UL * MAX_MCP_STATES; i++) {
		free(seal(s, &OF, "x"));
	}
	assert_int_equal(opened(s, &OF, first, ""), STATE_USED);
	assert_int_equal(opened(s, &OTHER, others, "2"), STATE_GOOD);
}

/* New states of a client first replace its expired states, so its valid states stay. */
static void test_expired_ones_make_room(void **state)
{
	static const struct state_binding OTHER = { .method = "tools/call", .principal = "other" };
	AUTO(states_done) struct state_store *s = state_store_new(2500);

	for (size_t i = 0; i < 10; i++) {
		free(seal(s, &OF, "x"));
	}
	moved_s += 3;
	auto_free char *first = seal(s, &OTHER, "1");
	for (size_t i = 1; i < MAX_MCP_STATES; i++) {
		free(seal(s, &OTHER, "x"));
	}
	assert_int_equal(opened(s, &OTHER, first, "1"), STATE_GOOD);
	/* If a client has more than MAX_MCP_STATES valid states, the oldest is dropped. */
	auto_free char *second = seal(s, &OTHER, "2");
	for (size_t i = 0; i < MAX_MCP_STATES; i++) {
		free(seal(s, &OTHER, "x"));
	}
	assert_int_equal(opened(s, &OTHER, second, "2"), STATE_USED);
}

static void test_caps(void **state)
{
	AUTO(states_done) struct state_store *s = state_store_new(STATE_TTL_MS);
	auto_free char *text = calloc(1, MAX_MCP_STATE + 2);
	auto_buf out = BUF(1 << 20);

	memset(text, 'x', MAX_MCP_STATE);
	auto_free char *sealed = seal(s, &OF, text);
	assert_int_equal(opened(s, &OF, sealed, text), STATE_GOOD);
	text[MAX_MCP_STATE] = 'x';
	assert_int_equal(state_seal(s, &OF, text, &out), -1);
	assert_int_equal(out.len, 0);
	/* If the buffer is too small, sealing fails. */
	buf_done(&out);
	buf_init(&out, 32);
	assert_int_equal(state_seal(s, &OF, "x", &out), -1);
	state_store_free(NULL);
}

static void test_equal(void **state)
{
	assert_true(ct_equal("", "x", 0));
	assert_true(ct_equal("abc", "abd", 2));
	assert_false(ct_equal("abc", "abd", 3));
	assert_false(ct_equal("\x80", "\0", 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip_once),
		cmocka_unit_test(test_every_byte_counts),
		cmocka_unit_test(test_bound_to_what_it_was_made_for),
		cmocka_unit_test(test_expires),
		cmocka_unit_test(test_oldest_is_forgotten),
		cmocka_unit_test(test_each_client_has_a_share),
		cmocka_unit_test(test_expired_ones_make_room),
		cmocka_unit_test(test_caps),
		cmocka_unit_test(test_equal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
