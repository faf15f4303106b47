/* uri.c - reads the addresses of resources; writes and reads the cursors of lists. */
#include "serve/uri.h"

#include <stdlib.h>
#include <string.h>

#include "trace/runs.h"
#include "base/hex.h"
#include "base/limits.h"
#include "base/number.h"
#include "base/own.h"
#include "base/percent.h"

static const struct {
	const char *prefix;
	const char *suffix;
	enum uri_kind kind;
} FORMS[] = {
	{ URI_RUNS, "/trace", URI_TRACE }, { URI_RUNS, "/output", URI_OUTPUT },
	{ URI_RUNS, "", URI_RUN },         { URI_SKILLS, "/files", URI_FILES },
	{ URI_SKILLS, "", URI_MANIFEST },  { URI_SKILL, "", URI_SKILL_FILE },
};

static int upper_hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

char *uri_decode(const char *text, bool path)
{
	size_t len = strlen(text);
	auto_free char *out = len <= MAX_URI ? malloc(len + 1) : NULL;
	size_t n = 0;

	for (size_t i = 0; out != NULL && i < len; i++) {
		int c = (unsigned char)text[i];
		if (c == '%' && i + 2 < len && upper_hex_digit(text[i + 1]) >= 0 &&
		    upper_hex_digit(text[i + 2]) >= 0) {
			c = upper_hex_digit(text[i + 1]) * 16 + upper_hex_digit(text[i + 2]);
			i += 2;
			if (c == 0 || percent_literal((unsigned char)c, path)) {
				return NULL;
			}
		} else if (!percent_literal((unsigned char)c, path)) {
			return NULL;
		}
		out[n++] = (char)c;
	}
	if (out != NULL) {
		out[n] = '\0';
	}
	return steal_ptr(&out);
}

/* Returns the part between prefix and suffix (new), or NULL if the text does not have both. */
static char *text_between(const char *text, const char *prefix, const char *suffix)
{
	size_t len = strlen(text);
	size_t front = strlen(prefix);
	size_t back = strlen(suffix);

	if (len <= front + back || strncmp(text, prefix, front) != 0 ||
	    strcmp(text + len - back, suffix) != 0) {
		return NULL;
	}
	return strndup(text + front, len - front - back);
}

/* Reads "?from=N". Returns false for any other text, and for another spelling of N (such as a
 * leading 0). */
static bool read_query(const char *query, uint64_t *ret)
{
	static const char before[] = "?from=";
	const char *digits = query + strlen(before);

	return strncmp(query, before, strlen(before)) == 0 &&
	       (digits[0] != '0' || digits[1] == '\0') &&
	       number_parse(digits, 0, 999999999999999999, ret);
}

static void read_path(struct uri *ret, const char *text)
{
	for (size_t i = 0; i < ARRAY_LEN(FORMS); i++) {
		auto_free char *part = text_between(text, FORMS[i].prefix, FORMS[i].suffix);
		if (part == NULL) {
			continue;
		}
		switch (FORMS[i].kind) {
		case URI_SKILL_FILE:
			ret->name = steal_ptr(&part);
			break;
		case URI_MANIFEST:
		case URI_FILES:
			ret->name = uri_decode(part, false);
			break;
		default:
			ret->name = runs_id_valid(part, strlen(part)) ? steal_ptr(&part) : NULL;
		}
		ret->kind = ret->name != NULL ? FORMS[i].kind : URI_NONE;
		return;
	}
}

void uri_read(struct uri *ret, const char *text)
{
	const char *query = strchr(text, '?');

	*ret = (struct uri){ .kind = URI_NONE };
	if (strlen(text) > MAX_URI) {
		return;
	}
	if (query == NULL) {
		read_path(ret, text);
		return;
	}
	auto_free char *path = strndup(text, (size_t)(query - text));
	if (path != NULL) {
		read_path(ret, path);
	}
	if ((ret->kind != URI_TRACE && ret->kind != URI_OUTPUT) || !read_query(query, &ret->from)) {
		uri_done(ret);
	}
}

void uri_done(struct uri *u)
{
	free(u->name);
	*u = (struct uri){ .kind = URI_NONE };
}

void uri_cursor_write(struct buf *out, const char *place)
{
	size_t len = strlen(place);
	auto_free char *hex = malloc(2 * len + 1);

	if (hex == NULL || len > MAX_CURSOR) {
		out->failed = true;
		return;
	}
	hex_encode(place, len, hex);
	buf_adds(out, hex);
}

char *uri_cursor_read(const char *cursor)
{
	size_t len = strlen(cursor);
	auto_free char *place = len <= 2 * MAX_CURSOR ? calloc(1, len / 2 + 1) : NULL;

	if (place == NULL || len == 0 || hex_decode(cursor, len, place, len / 2) != 0 ||
	    strlen(place) != len / 2) {
		return NULL;
	}
	return steal_ptr(&place);
}
