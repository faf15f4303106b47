/* test_prices.c - prices: the built-in table, the owner's file that overrides it, and the price of
 * tokens. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/own.h"
#include "os/file.h"
#include "policy/plan.h"
#include "session/prices.h"

static char dir[] = "/tmp/prices-XXXXXX";
static char file[64];

static int make_dir(void **state)
{
	if (mkdtemp(dir) == NULL) {
		return -1;
	}
	snprintf(file, sizeof(file), "%s/prices.yaml", dir);
	return 0;
}

static int remove_dir(void **state)
{
	unlink(file);
	return rmdir(dir);
}

/* Loads the prices. `text` is the content of the owner's price file; NULL: the owner has none. */
static int load(const char *text, struct prices *p, struct ssb_error *err)
{
	struct owner o = { .uid = getuid(), .config_dir = dir };
	struct ssb_diags *d = ssb_diags_new();

	unlink(file);
	if (text != NULL) {
		auto_fd fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		assert_true(fd >= 0);
		assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	}
	int r = prices_load(&o, p, d, err);
	ssb_diags_free(d);
	return r;
}

static struct prices good(const char *text)
{
	struct ssb_error err = { 0 };
	struct prices p;

	if (load(text, &p, &err) < 0) {
		fail_msg("%s: %s", err.where, err.text);
	}
	return p;
}

#define auto_prices AUTO(prices_done) struct prices

static micros cost(const struct prices *p, const char *model, uint64_t in, uint64_t out)
{
	struct ssb_error err = { 0 };
	micros m = -1;

	if (prices_cost(p, model, in, out, &m, &err) < 0) {
		fail_msg("%s: %s", model, err.text);
	}
	return m;
}

static void ours(void **state)
{
	static const struct {
		const char *model;
		micros in;
		micros out;
	} ROWS[] = {
		{ "gpt-4o", 2500000, 10000000 },
		{ "gpt-4o-mini", 150000, 600000 },
		{ "gpt-4.1", 2000000, 8000000 },
		{ "gpt-4.1-mini", 400000, 1600000 },
		{ "gpt-4.1-nano", 100000, 400000 },
		{ "o3", 2000000, 8000000 },
		{ "o3-mini", 1100000, 4400000 },
		{ "o4-mini", 1100000, 4400000 },
		{ "claude-sonnet-4-5-20250514", 3000000, 15000000 },
		{ "claude-haiku-3-5-20241022", 800000, 4000000 },
		{ "claude-opus-4-20250514", 15000000, 75000000 },
	};
	auto_prices p = good(NULL);

	assert_int_equal(p.n, ARRAY_LEN(ROWS));
	assert_false(p.has_default);
	for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
		assert_int_equal(cost(&p, ROWS[i].model, 1000000, 0), ROWS[i].in);
		assert_int_equal(cost(&p, ROWS[i].model, 0, 1000000), ROWS[i].out);
	}
}

/* data/prices.yaml contains exactly the built-in prices, so loading it changes nothing. */
static void shipped_file(void **state)
{
	char path[sizeof(__FILE__) + 32] = __FILE__;
	struct buf text;

	snprintf(strrchr(path, '/'), 32, "/../../data/prices.yaml");
	buf_init(&text, MAX_YAML_BYTES);
	auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(file_read_all(fd, &text), 0);
	auto_free char *bytes = buf_steal(&text);
	auto_prices ours_alone = good(NULL);
	auto_prices both = good(bytes);
	assert_int_equal(both.n, ours_alone.n);
	assert_memory_equal(both.v, ours_alone.v, both.n * sizeof(both.v[0]));
	assert_false(both.has_default);
}

static void rounding(void **state)
{
	auto_prices p = good("models: {m: {in: 0.000001, out: 2.5}}");

	assert_int_equal(cost(&p, "m", 0, 0), 0);
	assert_int_equal(cost(&p, "m", 1, 0), 1); /* rounded up, never down to 0 */
	assert_int_equal(cost(&p, "m", 1000000, 0), 1);
	assert_int_equal(cost(&p, "m", 1000001, 0), 2);
	assert_int_equal(cost(&p, "m", 0, 1), 3);
	assert_int_equal(cost(&p, "m", 0, 2), 5);
	assert_int_equal(cost(&p, "m", 500000, 1), 3); /* only the sum is rounded */
	assert_int_equal(cost(&p, "gpt-4o", 1234, 567), 3085 + 5670);
}

static void too_much(void **state)
{
	auto_prices p = good("models: {dear: {in: 1000000000, out: 1000000000}}");
	struct ssb_error err = { 0 };
	micros m = 42;

	assert_int_equal(cost(&p, "dear", 1000000, 0), MAX_MICROS);
	assert_int_equal(prices_cost(&p, "dear", 1000000, 1, &m, &err), -1);
	assert_int_equal(err.code, SSB_E_USAGE);
	err = (struct ssb_error){ 0 };
	assert_int_equal(prices_cost(&p, "dear", UINT64_MAX, UINT64_MAX, &m, &err), -1);
	assert_int_equal(err.code, SSB_E_USAGE);
	assert_int_equal(m, 42);
}

static void unknown(void **state)
{
	auto_prices p = good("models: {house-model: {in: 1, out: 2}}");
	struct ssb_error err = { 0 };
	micros m = 42;

	assert_int_equal(prices_cost(&p, "gpt4o", 1, 1, &m, &err), -1);
	assert_int_equal(err.code, SSB_E_NOT_FOUND);
	assert_non_null(strstr(err.text, "did you mean gpt-4o?"));
	err = (struct ssb_error){ 0 };
	assert_int_equal(prices_cost(&p, "hause-model", 1, 1, &m, &err), -1);
	assert_non_null(strstr(err.text, "did you mean house-model?"));
	err = (struct ssb_error){ 0 };
	assert_int_equal(prices_cost(&p, "", 1, 1, &m, &err), -1);
	assert_int_equal(prices_cost(&p, "quite\x1b another", 1, 1, &m, &err), -1);
	assert_null(strchr(err.text, '\x1b'));
	assert_int_equal(m, 42);
}

static void owners(void **state)
{
	auto_prices p = good("models:\n"
	                     "  gpt-4o: {in: 9, out: 8.5}\n"
	                     "  house/model: {in: 0, out: 0}\n"
	                     "default: {in: 2, out: 8}\n");

	assert_int_equal(cost(&p, "gpt-4o", 1000000, 0), 9000000);
	assert_int_equal(cost(&p, "gpt-4o", 0, 1000000), 8500000);
	assert_int_equal(cost(&p, "house/model", 5, 5), 0);
	assert_int_equal(cost(&p, "o3", 1000000, 0), 2000000);
	assert_int_equal(cost(&p, "anything else", 1000000, 1000000), 10000000);
	auto_prices empty = good("");
	assert_false(empty.has_default);
}

static void wrong_files(void **state)
{
	static const struct {
		const char *text;
		const char *at;
		const char *says;
	} ROWS[] = {
		{ "model: {}", ":1:1", "did you mean models?" },
		{ "- a", ":1:1", "the prices must be a mapping" },
		{ "models: []", ":1:9", "models must be a mapping" },
		{ "models: {a: 5}", ":1:13", "a must be a mapping" },
		{ "models: {a: {in: 5}}", ":1:13", "out is missing" },
		{ "models: {a: {in: 5, out: -1}}", ":1:26", "is negative" },
		{ "models: {a: {in: 5, out: .nan}}", ":1:26", "is not an amount" },
		{ "models: {a: {in: 5, out: 1, cached: 1}}", ":1:29", "unknown key" },
		{ "default: {in: 5}", ":1:10", "out is missing" },
		{ "default: 5", ":1:10", "default must be a mapping" },
		{ "models: {a: {in: 1, out: 1}, a: {in: 1, out: 1}}", ":1:30", "duplicate key" },
	};

	for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
		struct prices p;
		struct ssb_error err = { 0 };
		if (load(ROWS[i].text, &p, &err) == 0 || err.code != SSB_E_POLICY ||
		    strstr(err.where, ROWS[i].at) == NULL ||
		    strstr(err.text, ROWS[i].says) == NULL) {
			fail_msg("%s: %s: %s", ROWS[i].text, err.where, err.text);
		}
	}
}

/* Whoever writes the price file decides how much a budget buys, so a file that other users can
 * write is refused. */
static void only_the_owners_file(void **state)
{
	struct owner o = { .uid = getuid(), .config_dir = dir };
	struct ssb_diags *d = ssb_diags_new();
	struct prices p;
	struct ssb_error err = { 0 };

	auto_prices fine = good("default: {in: 0, out: 0}");
	assert_true(fine.has_default);
	assert_int_equal(chmod(file, 0620), 0);
	assert_int_equal(prices_load(&o, &p, d, &err), -1);
	assert_int_equal(err.code, SSB_E_POLICY);
	assert_non_null(strstr(err.text, "others can write the price file"));
	unlink(file);
	assert_int_equal(mkfifo(file, 0600), 0);
	err = (struct ssb_error){ 0 };
	assert_int_equal(prices_load(&o, &p, d, &err), -1);
	assert_non_null(strstr(err.text, "not a regular file"));
	ssb_diags_free(d);
}

/* The manual lists exactly the built-in prices, and its example can be loaded. */
static void the_manual(void **state)
{
	char path[512];
	auto_buf page = BUF(1 << 20);

	snprintf(path, sizeof(path), "%s/man/skillsandbox-session.5", getenv("SSB_SOURCE"));
	auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0 && file_read_all(fd, &page) == 0);
	auto_prices ours_only = good(NULL);
	for (size_t i = 0; i < ours_only.n; i++) {
		const struct price *p = &ours_only.v[i];
		char row[256];
		snprintf(row, sizeof(row), "\n.It %s Ta %lld.%02lld Ta %lld.%02lld\n", p->model,
		         (long long)p->in / MICROS_PER_DOLLAR,
		         (long long)p->in % MICROS_PER_DOLLAR / 10000,
		         (long long)p->out / MICROS_PER_DOLLAR,
		         (long long)p->out % MICROS_PER_DOLLAR / 10000);
		if (strstr(page.data, row) == NULL) {
			fail_msg("not in the manual: %s", row);
		}
	}
	char *example = strstr(page.data, "\nmodels:");
	assert_non_null(example);
	char *end = strstr(example, "\n.Ed");
	assert_non_null(end);
	end[1] = '\0';
	auto_prices p = good(example);
	assert_true(p.has_default);
	assert_int_equal(p.n, ours_only.n + 1);
}

static void cap(void **state)
{
	for (size_t extra = 0; extra < 2; extra++) {
		auto_prices all = good(NULL);
		size_t room = MAX_PRICES - all.n + extra;
		auto_buf b = BUF(MAX_YAML_BYTES);
		struct prices p = { 0 };
		struct ssb_error err = { 0 };
		buf_adds(&b, "models:\n");
		for (size_t i = 0; i < room; i++) {
			buf_addf(&b, " m%zu: {in: 1, out: 1}\n", i);
		}
		assert_int_equal(load(b.data, &p, &err), extra == 0 ? 0 : -1);
		prices_done(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ours),        cmocka_unit_test(shipped_file),
		cmocka_unit_test(rounding),    cmocka_unit_test(too_much),
		cmocka_unit_test(unknown),     cmocka_unit_test(owners),
		cmocka_unit_test(wrong_files), cmocka_unit_test(only_the_owners_file),
		cmocka_unit_test(cap),         cmocka_unit_test(the_manual),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
