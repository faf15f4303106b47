#include "wire/git_config.h"

#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/own.h"

#define NAME_BYTES 64 /* of a section or key; those that matter are shorter */

static const struct {
	const char *section;
	const char *key;
	bool parted; /* has a subsection */
	enum git_config_name name;
} NAMES[] = {
	{ "core", "hookspath", false, GIT_CONFIG_HOOKS },
	{ "include", "path", false, GIT_CONFIG_INCLUDE },
	{ "includeif", "path", true, GIT_CONFIG_INCLUDE },
};

struct reader {
	const char *at;
	const char *end;
	char section[NAME_BYTES];
	bool parted;
	git_config_fn *fn;
	void *arg;
};

/* The next byte; the end is the end of a line, as is CR LF. */
static int peek(const struct reader *r)
{
	if (r->at == r->end) {
		return '\n';
	}
	return *r->at == '\r' && r->end - r->at > 1 && r->at[1] == '\n' ? '\n'
	                                                                : (unsigned char)*r->at;
}

static int next(struct reader *r)
{
	int c = peek(r);

	if (r->at < r->end) {
		r->at += 1 + (c == '\n' && *r->at == '\r');
	}
	return c;
}

/* By git's own tables, whatever the locale is. */
static bool is_space(int c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_key(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-';
}

static void skip_line(struct reader *r)
{
	while (next(r) != '\n') {
	}
}

/* A section's or key's name. One that is too long is none of ours. */
static void read_name(struct reader *r, char name[static NAME_BYTES])
{
	size_t n = 0;

	while (is_key(peek(r))) {
		char c = (char)next(r);
		if (n < NAME_BYTES) {
			name[n++] = c;
		}
	}
	name[n < NAME_BYTES ? n : 0] = '\0';
}

/* Behind the '['. The subsection says nothing here, but it may hold a ']'. */
static void read_section(struct reader *r)
{
	bool quoted = false;

	read_name(r, r->section);
	r->parted = peek(r) != ']';
	while (peek(r) != '\n') {
		int c = next(r);
		if (c == ']' && !quoted) {
			return;
		}
		if (c == '"') {
			quoted = !quoted;
		} else if (c == '\\' && quoted && peek(r) != '\n') {
			(void)next(r);
		}
	}
	r->section[0] = '\0'; /* it has no end */
}

struct value {
	char text[PATH_MAX];
	size_t n;      /* counts on past the end */
	size_t spaces; /* behind it, which count where more follows */
};

static void value_add(struct value *v, int c)
{
	if (v->n < sizeof(v->text)) {
		v->text[v->n] = (char)c;
	}
	v->n++;
}

/* Behind a backslash; false: git knows no such escape. */
static bool read_escape(struct reader *r, struct value *v)
{
	static const char FROM[] = "\\\"tbn", TO[] = "\\\"\t\b\n";
	int c = next(r);
	const char *known = c != '\0' ? strchr(FROM, c) : NULL;

	if (known != NULL) {
		value_add(v, TO[known - FROM]);
	}
	return known != NULL;
}

/* Behind the '=', to the end of the line. False: git does not take it. */
static bool read_value(struct reader *r, struct value *v)
{
	bool quoted = false;

	while (peek(r) != '\n') {
		int c = next(r);
		if (is_space(c) && !quoted) {
			if (v->n > 0) {
				value_add(v, c);
				v->spaces++;
			}
			continue;
		}
		if (!quoted && (c == '#' || c == ';')) {
			break;
		}
		v->spaces = 0;
		if (c == '"') {
			quoted = !quoted;
		} else if (c != '\\') {
			value_add(v, c);
		} else if (peek(r) == '\n') {
			(void)next(r); /* it goes on in the next line */
		} else if (!read_escape(r, v)) {
			return false;
		}
	}
	v->n -= v->spaces;
	return !quoted;
}

/* A key, and what it is set to; then the line is over. */
static void read_setting(struct reader *r)
{
	char key[NAME_BYTES];
	struct value v = { .n = 0 };

	read_name(r, key);
	while (peek(r) == ' ' || peek(r) == '\t') {
		(void)next(r);
	}
	bool good = peek(r) == '=' && next(r) == '=' && read_value(r, &v) && v.n < sizeof(v.text);
	skip_line(r);
	if (!good) {
		return;
	}
	v.text[v.n] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
		if (NAMES[i].parted == r->parted && strcasecmp(NAMES[i].section, r->section) == 0 &&
		    strcasecmp(NAMES[i].key, key) == 0 && v.text[0] != '\0') {
			r->fn(r->arg, NAMES[i].name, v.text);
		}
	}
}

void git_config_read(const char *text, size_t len, git_config_fn *fn, void *arg)
{
	static const char BOM[] = "\xef\xbb\xbf";
	struct reader r = { .at = text, .end = text + len, .fn = fn, .arg = arg };

	if (len >= sizeof(BOM) - 1 && memcmp(text, BOM, sizeof(BOM) - 1) == 0) {
		r.at += sizeof(BOM) - 1;
	}
	while (r.at < r.end) {
		int c = peek(&r);
		if (is_space(c)) {
			(void)next(&r);
		} else if (c == '[') {
			(void)next(&r);
			read_section(&r);
		} else if (is_key(c)) {
			read_setting(&r);
		} else {
			skip_line(&r);
		}
	}
}
