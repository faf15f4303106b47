/* test_cli_options.c - the parser of the command line and its messages. The manual page and the
 * completions contain every option. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

/* Included as source: the code of the command line is not in the library. */
#include "cli/flags.c"
#include "cli/cli_options.c"
#include "cli/say.c"
#include "cli/screen.c"

#include "base/suggest.h"

static char seen[512]; /* "name=value;" of every option, in order */

static int record(void *ctx, const struct option_row *row, const char *value, struct ssb_error *err)
{
	if (value != NULL && strcmp(value, "wrong") == 0) {
		return ssb_fail(err, SSB_E_USAGE, 0, row->name, "wrong value");
	}
	size_t n = strlen(seen);
	snprintf(seen + n, sizeof(seen) - n, "%s=%s;", row->name, value != NULL ? value : "");
	return 0;
}

/* Splits `line` at spaces and parses it. */
static int parse(const char *line, unsigned command, bool mixed, struct operands *ret,
                 struct ssb_error *err)
{
	static char words[256];
	static char *argv[32];
	struct option_parse p = { FLAGS, N_FLAGS, command, mixed, record, NULL };
	size_t n = 0;

	snprintf(words, sizeof(words), "%s", line);
	for (char *save, *w = strtok_r(words, " ", &save); w != NULL;
	     w = strtok_r(NULL, " ", &save)) {
		argv[n++] = w;
	}
	argv[n] = NULL;
	seen[0] = '\0';
	*err = (struct ssb_error){ 0 };
	return cli_options_parse(&p, argv, ret, err);
}

static void test_forms(void **state)
{
	static const struct {
		const char *line;
		unsigned command;
		bool mixed;
		const char *seen;
		const char *operands; /* the parsed words, each with a space after it */
		bool dashes;
	} cases[] = {
		{ "", ON_RUN, false, "", "", false },
		{ "d a -q -- b", ON_RUN, false, "", "d a -q -- b ", false },
		{ "-q d --json", ON_RUN, false, "quiet=;", "d --json ", false },
		{ "-- c -q --", ON_RUN, false, "", "c -q -- ", true },
		{ "--read=/a --read /b -r/c -r /d x", ON_RUN, false,
		  "read=/a;read=/b;read=/c;read=/d;", "x ", false },
		{ "-vq -qr/a", ON_RUN, false, "verbose=;quiet=;quiet=;read=/a;", "", false },
		{ "--read=", ON_RUN, false, "read=;", "", false },
		{ "--env A=b=c", ON_RUN, false, "env=A=b=c;", "", false },
		{ "--read -- d", ON_RUN, false, "read=--;", "d ", false },
		{ "--tty --no-tty", ON_RUN, false, "tty=yes;no-tty=no;", "", false },
		{ "d --json e", ON_VALIDATE, true, "json=;", "d e ", false },
		{ "d -- --json", ON_VALIDATE, true, "", "d --json ", false },
		{ "-- c -q", ON_PROVE, true, "", "c -q ", true },
		{ "-", ON_VALIDATE, true, "", "- ", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct operands got;
		struct ssb_error err;
		char joined[256] = "";
		assert_int_equal(parse(cases[i].line, cases[i].command, cases[i].mixed, &got, &err),
		                 0);
		for (int k = 0; k < got.n; k++) {
			size_t n = strlen(joined);
			snprintf(joined + n, sizeof(joined) - n, "%s ", got.v[k]);
		}
		assert_string_equal(seen, cases[i].seen);
		assert_string_equal(joined, cases[i].operands);
		assert_null(got.v[got.n]);
		assert_int_equal(got.dashes, cases[i].dashes);
	}
}

static void test_mistakes(void **state)
{
	static const struct {
		const char *line;
		unsigned command;
		const char *text; /* text that the message must contain */
	} cases[] = {
		{ "--raed /x", ON_RUN, "unknown option --raed; did you mean --read?" },
		{ "--zzzzzz", ON_RUN, "unknown option --zzzzzz" },
		{ "--rea /x", ON_RUN, "did you mean --read?" }, /* options cannot be abbreviated */
		{ "--evn=SECRET=1", ON_RUN, "unknown option --evn; did you mean --env?" },
		{ "--read", ON_RUN, "--read needs a value" },
		{ "-r", ON_RUN, "--read needs a value" },
		{ "--json=yes", ON_RUN, "--json takes no value" },
		{ "-Q", ON_RUN, "unknown option -Q" },
		{ "-vQ", ON_RUN, "unknown option -Q" },
		/* an option of `run` only */
		{ "--dry-run", ON_INSPECT, "unknown option --dry-run" },
		{ "-r x", ON_DOCTOR, "unknown option -r" },
		{ "--memory wrong", ON_RUN, "wrong value" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct operands got = { .n = 77 };
		struct ssb_error err;
		assert_int_equal(parse(cases[i].line, cases[i].command, false, &got, &err), -1);
		assert_int_equal(err.code, SSB_E_USAGE);
		assert_int_equal(got.n, 77);
		if (strstr(err.text, cases[i].text) == NULL || strstr(err.text, "SECRET") != NULL) {
			fail_msg("%s: %s", cases[i].line, err.text);
		}
	}
}

static void test_suggest(void **state)
{
	static const char *const words[] = { "run", "validate", "inspect", NULL, "memory_mb" };
	static const struct {
		const char *word;
		const char *near;
	} cases[] = {
		{ "rnu", "run" },
		{ "vaildate", "validate" },
		{ "inspct", "inspect" },
		{ "memory-mb", "memory_mb" },
		{ "completely", NULL },
		{ "x", NULL },
		{ "", NULL },
		{ "a-word-that-is-much-longer-than-anything-we-know-of", NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *near = suggest(cases[i].word, strlen(cases[i].word), words,
		                           ARRAY_LEN(words), sizeof(words[0]));
		if (cases[i].near == NULL) {
			assert_null(near);
		} else {
			assert_non_null(near);
			assert_string_equal(near, cases[i].near);
		}
	}
}

static char *slurp(const char *name)
{
	const char *source = getenv("SSB_SOURCE");
	char path[4096];
	char chunk[4096];
	auto_buf b;

	assert_non_null(source);
	snprintf(path, sizeof(path), "%s/%s", source, name);
	auto_file f = fopen(path, "r");
	assert_non_null(f);
	buf_init(&b, 1024 * 1024);
	for (size_t n; (n = fread(chunk, 1, sizeof(chunk), f)) > 0;) {
		buf_add(&b, chunk, n);
	}
	return buf_steal(&b);
}

/* Returns true if `text` contains `prefix` and then the whole name. */
static bool mentions(const char *text, const char *prefix, const char *name)
{
	char word[64];

	snprintf(word, sizeof(word), "%s%s", prefix, name);
	for (const char *p = text; (p = strstr(p, word)) != NULL; p++) {
		char after = p[strlen(word)];
		if (strchr("abcdefghijklmnopqrstuvwxyz-", after) == NULL || after == '\0') {
			return true;
		}
	}
	return false;
}

static void test_documented(void **state)
{
	static const struct {
		const char *file;
		const char *prefix;
	} places[] = {
		{ "man/skillsandbox.1", "Fl -" },
		{ "completions/skillsandbox.bash", "--" },
		{ "completions/_skillsandbox", "--" },
		{ "completions/skillsandbox.fish", "-l " },
	};

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		auto_free char *text = slurp(places[i].file);
		assert_false(mentions(text, places[i].prefix, "no-such-option")); /* control */
		for (size_t k = 0; k < N_FLAGS; k++) {
			if (!mentions(text, places[i].prefix, FLAGS[k].name)) {
				fail_msg("%s does not know --%s", places[i].file, FLAGS[k].name);
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_mistakes),
		cmocka_unit_test(test_suggest),
		cmocka_unit_test(test_documented),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
