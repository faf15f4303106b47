/* git_config.c - parses git's settings more tolerantly than git does. */
#include "wire/git_config.h"

#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/own.h"

#define NAME_BYTES 64 /* room for the name of a section or key; all NAMES are shorter */

static const struct {
	const char *section;
	const char *key;
	bool parted; /* the section has a subsection */
	enum git_config_name name;
} NAMES[] = {
	{ "core", "hookspath", false, GIT_CONFIG_HOOKS },
	{ "include", "path", false, GIT_CONFIG_INCLUDE },
	{ "includeif", "path", true, GIT_CONFIG_INCLUDE },
	{ "init", "templatedir", false, GIT_CONFIG_TEMPLATE },
};

struct git_config_reader {
	const char *at;
	const char *end;
	char section[NAME_BYTES];
	bool parted;
	git_config_fn *fn;
	void *arg;
};

/* Returns the next byte without consuming it. The end of the text and CR LF are returned as
 * '\n'. */
static int peek_byte(const struct git_config_reader *r)
{
	if (r->at == r->end) {
		return '\n';
	}
	return *r->at == '\r' && r->end - r->at > 1 && r->at[1] == '\n' ? '\n'
	                                                                : (unsigned char)*r->at;
}

static int next_byte(struct git_config_reader *r)
{
	int c = peek_byte(r);

	if (r->at < r->end) {
		r->at += 1 + (c == '\n' && *r->at == '\r');
	}
	return c;
}

/* Like git's own function, does not depend on the locale. */
static bool is_space(int c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_key(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-';
}

static void skip_line(struct git_config_reader *r)
{
	while (next_byte(r) != '\n') {
	}
}

/* Reads the name of a section or key. A name that is too long is none of NAMES, and becomes "". */
static void read_name(struct git_config_reader *r, char name[static NAME_BYTES])
{
	size_t n = 0;

	while (is_key(peek_byte(r))) {
		char c = (char)next_byte(r);
		if (n < NAME_BYTES) {
			name[n++] = c;
		}
	}
	name[n < NAME_BYTES ? n : 0] = '\0';
}

/* Reads the header after '['. The subsection is ignored, but it may contain a ']'. */
static void read_section(struct git_config_reader *r)
{
	bool quoted = false;

	read_name(r, r->section);
	r->parted = peek_byte(r) != ']';
	while (peek_byte(r) != '\n') {
		int c = next_byte(r);
		if (c == ']' && !quoted) {
			return;
		}
		if (c == '"') {
			quoted = !quoted;
		} else if (c == '\\' && quoted && peek_byte(r) != '\n') {
			(void)next_byte(r);
		}
	}
	r->section[0] = '\0'; /* the final ']' is missing */
}

struct value {
	char text[PATH_MAX];
	size_t n;      /* length of the value, which may be greater than the buffer */
	size_t spaces; /* blanks at the end, which belong to the value only if another byte follows
	                  them */
};

static void value_add(struct value *v, int c)
{
	if (v->n < sizeof(v->text)) {
		v->text[v->n] = (char)c;
	}
	v->n++;
}

/* Reads the escape after a backslash. Returns false for an escape that git does not accept. */
static bool read_escape(struct git_config_reader *r, struct value *v)
{
	static const char FROM[] = "\\\"tbn", TO[] = "\\\"\t\b\n";
	int c = next_byte(r);
	const char *known = c != '\0' ? strchr(FROM, c) : NULL;

	if (known != NULL) {
		value_add(v, TO[known - FROM]);
	}
	return known != NULL;
}

/* Reads the value after '=', to the end of the line. Returns false if git would refuse it. */
static bool read_value(struct git_config_reader *r, struct value *v)
{
	bool quoted = false;

	while (peek_byte(r) != '\n') {
		int c = next_byte(r);
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
		} else if (peek_byte(r) == '\n') {
			(void)next_byte(r); /* the value continues in the next line */
		} else if (!read_escape(r, v)) {
			return false;
		}
	}
	v->n -= v->spaces;
	return !quoted;
}

/* Reads a key and its value, to the end of the line. */
static void read_setting(struct git_config_reader *r)
{
	char key[NAME_BYTES];
	struct value v = { .n = 0 };

	read_name(r, key);
	while (peek_byte(r) == ' ' || peek_byte(r) == '\t') {
		(void)next_byte(r);
	}
	bool good = peek_byte(r) == '=' && next_byte(r) == '=' && read_value(r, &v) &&
	            v.n < sizeof(v.text);
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
	struct git_config_reader r = { .at = text, .end = text + len, .fn = fn, .arg = arg };

	if (len >= sizeof(BOM) - 1 && memcmp(text, BOM, sizeof(BOM) - 1) == 0) {
		r.at += sizeof(BOM) - 1;
	}
	while (r.at < r.end) {
		int c = peek_byte(&r);
		if (is_space(c)) {
			(void)next_byte(&r);
		} else if (c == '[') {
			(void)next_byte(&r);
			read_section(&r);
		} else if (is_key(c)) {
			read_setting(&r);
		} else {
			skip_line(&r);
		}
	}
}
