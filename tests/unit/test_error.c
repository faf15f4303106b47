/* test_error.c - errors are filled once and can be wrapped. A list of findings has a maximum
 * length, and still never loses an error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

#include <errno.h>

#include "base/diag.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/name.h"
#include "base/own.h"

static void test_first_failure_wins(void **state)
{
	struct ssb_error err = { 0 };

	errno = EINTR;
	assert_int_equal(ssb_fail(&err, SSB_E_SYS, ENOENT, "mounts", "open '%s'", "/x"), -1);
	assert_int_equal(errno, EINTR);
	assert_int_equal(ssb_fail(&err, SSB_E_NOMEM, 0, "later", "other"), -1);
	assert_int_equal(err.code, SSB_E_SYS);
	assert_int_equal(err.sys_errno, ENOENT);
	assert_string_equal(err.where, "mounts");
	assert_string_equal(err.text, "open '/x': No such file or directory");
	assert_int_equal(ssb_wrap(&err, "skill %s", "weather"), -1);
	assert_string_equal(err.text, "skill weather: open '/x': No such file or directory");
	assert_int_equal(ssb_fail(NULL, SSB_E_SYS, 0, "", "x"), -1);
	assert_int_equal(ssb_wrap(NULL, "x"), -1);
}

static void test_long_texts_are_cut(void **state)
{
	struct ssb_error err = { 0 };
	char text[1000];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	ssb_fail(&err, SSB_E_SYS, EPERM, text, "%s", text);
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
	assert_int_equal(strlen(err.where), sizeof(err.where) - 1);
	ssb_wrap(&err, "%s", text);
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
}

static void test_diag_cap(void **state)
{
	struct ssb_diags *d = ssb_diags_new();

	for (int i = 0; i < MAX_DIAGS; i++) {
		diag_add(d, SSB_WARNING, "f:1:1", "write this", "finding %d", i);
	}
	assert_int_equal(ssb_diags_count(d), MAX_DIAGS);
	assert_string_equal(ssb_diags_get(d, MAX_DIAGS - 1)->text, "finding 63");
	assert_string_equal(ssb_diags_get(d, 0)->remedy, "write this");
	assert_false(diag_has_errors(d));

	diag_add(d, SSB_ERROR, "f:2:2", "", "one too many");
	assert_int_equal(ssb_diags_count(d), MAX_DIAGS);
	assert_true(diag_has_errors(d));
	assert_int_equal(ssb_diags_get(d, MAX_DIAGS - 1)->severity, SSB_ERROR);
	assert_non_null(strstr(ssb_diags_get(d, MAX_DIAGS - 1)->text, "too many"));
	assert_null(ssb_diags_get(d, MAX_DIAGS));
	ssb_diags_free(d);
	ssb_diags_free(NULL);
	diag_add(NULL, SSB_ERROR, "", "", "nowhere");
}

/* A full list of findings keeps an SSB_ALARM, whether it came before or after the others. */
static void test_diag_alarms(void **state)
{
	for (int first = 0; first < 2; first++) { /* the alarm comes first, or last */
		AUTO(diags_freep) struct ssb_diags *d = ssb_diags_new();
		size_t alarms = 0;
		for (int i = 0; i < MAX_DIAGS - 1; i++) {
			diag_add(d, SSB_WARNING, "f:1:1", "", "finding %d", i);
		}
		if (first == 0) {
			diag_add(d, SSB_ALARM, "f:2:2", "", "see this");
		}
		diag_add(d, SSB_NOTE, "f:3:3", "", "one more");
		diag_add(d, SSB_WARNING, "f:4:4", "", "and one more");
		if (first == 1) {
			diag_add(d, SSB_ALARM, "f:2:2", "", "see this");
		}
		diag_add(d, SSB_NOTE, "f:5:5", "", "too many by now");
		for (size_t i = 0; i < ssb_diags_count(d); i++) {
			alarms += strcmp(ssb_diags_get(d, i)->text, "see this") == 0;
		}
		assert_int_equal(alarms, 1);
		assert_int_equal(ssb_diags_count(d), MAX_DIAGS);
		assert_string_equal(ssb_diags_get(d, 0)->text, "finding 0");
		assert_non_null(strstr(ssb_diags_get(d, MAX_DIAGS - 1)->text, "too many findings"));
	}
}

static void test_every_enum_has_a_name(void **state)
{
	for (int i = SSB_OK; i <= SSB_E_NOMEM; i++) {
		assert_non_null(name_of_code((enum ssb_code)i));
	}
	for (int i = SSB_END_EXITED; i <= SSB_END_SESSION; i++) {
		assert_non_null(name_of_end((enum ssb_end)i));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_failure_wins),
		cmocka_unit_test(test_long_texts_are_cut),
		cmocka_unit_test(test_diag_cap),
		cmocka_unit_test(test_diag_alarms),
		cmocka_unit_test(test_every_enum_has_a_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
