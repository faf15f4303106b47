/* cli_options.c - see cli_options.h. */
#include "cli/cli_options.h"

#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "base/suggest.h"

static bool has_row(const struct option_parse *p, const struct option_row *row)
{
	return (row->commands & p->command) != 0;
}

static const struct option_row *find_by_name(const struct option_parse *p, const char *name,
                                             size_t len)
{
	return ARRAY_FIND(row, p->rows, p->n_rows,
	                  has_row(p, row) && strlen(row->name) == len &&
	                          memcmp(row->name, name, len) == 0);
}

static const struct option_row *find_by_letter(const struct option_parse *p, char letter)
{
	return ARRAY_FIND(row, p->rows, p->n_rows,
	                  has_row(p, row) && row->letter == letter && letter != '\0');
}

/* The message names only the option, because the value may be a secret. */
static int fail_unknown(const struct option_parse *p, const char *name, size_t len,
                        struct ssb_error *err)
{
	const char *near = suggest(name, len, &p->rows[0].name, p->n_rows, sizeof(p->rows[0]));

	if (near != NULL && find_by_name(p, near, strlen(near)) != NULL) {
		return ssb_fail(err, SSB_E_USAGE, 0, "",
		                "unknown option --%.*s; did you mean --%s?", (int)len, name, near);
	}
	return ssb_fail(err, SSB_E_USAGE, 0, "", "unknown option --%.*s", (int)len, name);
}

static int fail_no_value(const struct option_row *row, struct ssb_error *err)
{
	return ssb_fail(err, SSB_E_USAGE, 0, "", "--%s needs a value: --%s %s", row->name,
	                row->name, row->arg);
}

/* Advances to the next word and returns it, or NULL if there is none. */
static const char *next_word(char ***at)
{
	if ((*at)[1] == NULL) {
		return NULL;
	}
	return *++*at;
}

/* Parses "--name" or "--name=value" at **at. Leaves *at at the last word that it used. */
static int parse_long(const struct option_parse *p, char ***at, struct ssb_error *err)
{
	const char *name = **at + 2;
	size_t len = strcspn(name, "=");
	const char *value = name[len] == '=' ? name + len + 1 : NULL;
	const struct option_row *row = find_by_name(p, name, len);

	if (row == NULL) {
		return fail_unknown(p, name, len, err);
	}
	if (row->arg == NULL) {
		if (value != NULL) {
			return ssb_fail(err, SSB_E_USAGE, 0, "", "--%s takes no value", row->name);
		}
		return p->handler(p->ctx, row, row->value, err);
	}
	if (value == NULL) {
		/* "[=VALUE]": the value is optional, so the next word is not it. */
		value = row->arg[0] == '[' ? row->value : next_word(at);
	}
	if (value == NULL) {
		return fail_no_value(row, err);
	}
	return p->handler(p->ctx, row, value, err);
}

/* Parses one or more letters, "-x...", at **at. */
static int parse_letters(const struct option_parse *p, char ***at, struct ssb_error *err)
{
	for (const char *s = **at + 1; *s != '\0'; s++) {
		const struct option_row *row = find_by_letter(p, *s);
		if (row == NULL) {
			return ssb_fail(err, SSB_E_USAGE, 0, "", "unknown option -%c", *s);
		}
		if (row->arg == NULL) {
			if (p->handler(p->ctx, row, row->value, err) != 0) {
				return -1;
			}
			continue;
		}
		const char *value = s[1] != '\0' ? s + 1 : next_word(at);
		if (value == NULL) {
			return fail_no_value(row, err);
		}
		return p->handler(p->ctx, row, value, err);
	}
	return 0;
}

int cli_options_parse(const struct option_parse *p, char **argv, struct operands *ret,
                      struct ssb_error *err)
{
	struct operands found = { .v = argv };
	char **at = argv;

	for (; *at != NULL; at++) {
		if (strcmp(*at, "--") == 0) {
			found.dashes = found.n == 0;
			at++;
			break;
		}
		if ((*at)[0] != '-' || (*at)[1] == '\0') {
			if (!p->mixed) {
				break;
			}
			argv[found.n++] = *at;
			continue;
		}
		if (((*at)[1] == '-' ? parse_long : parse_letters)(p, &at, err) != 0) {
			return -1;
		}
	}
	if (found.n == 0) {
		found.v = at;
		found.before = argv;
		found.n_before = (size_t)(at - argv) - found.dashes;
		for (; *at != NULL; at++) {
			found.n++;
		}
	}
	/* All further words are operands. They are moved up, next to the operands before them. */
	while (*at != NULL) {
		argv[found.n++] = *at++;
	}
	found.v[found.n] = NULL;
	*ret = found;
	return 0;
}
