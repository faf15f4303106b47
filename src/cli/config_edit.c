/* config_edit.c - see config_edit.h. The caller's text has passed a strict check before it is
 * edited, so the scanners here never read a malformed text. */
#include "cli/config_edit.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "base/json_read.h"
#include "base/line_diff.h"
#include "base/own.h"
#include "cli/toml_check.h"

#define INDENT "  "
#define AROUND 1 /* unchanged lines that are shown before and after a change */

#define CANNOT_TELL "%s cannot be told apart in it; change it by hand"

/* A member of a JSON object, as positions in the text. */
struct member {
	size_t key;   /* where its name begins */
	size_t value; /* where its value begins */
	size_t end;   /* position after its value */
};

static size_t skip_blank(const char *s, size_t at)
{
	return at + strspn(s + at, " \t\r\n");
}

/* Returns the position after the string that begins at `at`. */
static size_t skip_string(const char *s, size_t at)
{
	for (at++; s[at] != '"'; at++) {
		at += s[at] == '\\';
	}
	return at + 1;
}

/* Returns the position after the value that begins at `at`. */
static size_t skip_value(const char *s, size_t at)
{
	size_t deep = 0;

	do {
		if (s[at] == '"') {
			at = skip_string(s, at);
		} else if (s[at] == '{' || s[at] == '[') {
			deep++;
			at++;
		} else if (s[at] == '}' || s[at] == ']') {
			deep--;
			at++;
		} else if (deep > 0) {
			at++;
		} else {
			return at + strcspn(s + at, ",]} \t\r\n");
		}
	} while (deep > 0);
	return at;
}

/* Finds the member `name` of the object that begins at `object`. *ret_last is the end of the value
 * of the last member, or 0 for an empty object. A name that is written with escapes is not found;
 * the check of the result then reports a duplicate. */
static bool find_member(const char *s, size_t object, const char *name, struct member *ret,
                        size_t *ret_last)
{
	size_t at = skip_blank(s, object + 1), len = strlen(name);
	bool found = false;

	*ret_last = 0;
	while (s[at] == '"') {
		struct member m = { .key = at };
		size_t end = skip_string(s, at);
		m.value = skip_blank(s, skip_blank(s, end) + 1);
		m.end = skip_value(s, m.value);
		*ret_last = m.end;
		if (end - at - 2 == len && memcmp(s + at + 1, name, len) == 0) {
			*ret = m;
			found = true;
		}
		at = skip_blank(s, m.end);
		at = s[at] == ',' ? skip_blank(s, at + 1) : at;
	}
	return found;
}

static void put_indent(struct buf *out, size_t deep)
{
	buf_addc(out, '\n');
	for (size_t i = 0; i < deep; i++) {
		buf_adds(out, INDENT);
	}
}

/* Writes `"a": {"b": value}` for the remaining names, each one level deeper. The lines of the value
 * are indented to that level. */
static void put_members(struct buf *out, const char *const path[], size_t deep, const char *value)
{
	size_t n = 0;

	for (; path[n] != NULL; n++) {
		put_indent(out, deep + n);
		buf_addf(out, "\"%s\": %s", path[n], path[n + 1] != NULL ? "{" : "");
	}
	for (const char *c = value; *c != '\0'; c++) {
		if (*c == '\n') {
			put_indent(out, deep + n - 1);
		} else {
			buf_addc(out, *c);
		}
	}
	while (--n > 0) {
		put_indent(out, deep + n - 1);
		buf_addc(out, '}');
	}
}

static int refuse_edit(struct ssb_error *err, const char *why)
{
	return ssb_fail(err, SSB_E_POLICY, 0, "", "%s", why);
}

/* Removes one member, one comma beside it, and the blanks before it. */
static void cut_member(const char *s, size_t len, const struct member *m, struct buf *out)
{
	size_t from = m->key, to = m->end;
	size_t next = skip_blank(s, to);

	while (from > 0 && strchr(" \t\r\n", s[from - 1]) != NULL) {
		from--;
	}
	if (s[next] == ',') {
		to = next + 1;
	} else if (s[from - 1] == ',') {
		from--;
	}
	buf_add(out, s, from);
	/* If this was the only member, the blanks between the brackets are removed, too. */
	next = skip_blank(s, to);
	to = s[from - 1] == '{' && s[next] == '}' ? next : to;
	buf_add(out, s + to, len - to);
}

static int edit_json(const char *s, size_t len, const char *const path[], const char *value,
                     struct buf *out, struct ssb_error *err)
{
	size_t object = skip_blank(s, 0), last = 0, deep = 1;
	struct member m = { 0 };

	for (;; path++, deep++) {
		if (s[object] != '{') {
			return refuse_edit(err, "the parent of the server's entry is not a JSON "
			                        "object; change it by hand");
		}
		if (!find_member(s, object, path[0], &m, &last)) {
			break;
		}
		if (path[1] == NULL) {
			if (value == NULL) {
				cut_member(s, len, &m, out);
				return 0;
			}
			buf_add(out, s, m.value);
			for (const char *c = value; *c != '\0'; c++) {
				if (*c == '\n') {
					put_indent(out, deep);
				} else {
					buf_addc(out, *c);
				}
			}
			buf_add(out, s + m.end, len - m.end);
			return 0;
		}
		object = m.value;
	}
	if (value == NULL) {
		buf_add(out, s, len);
		return 0;
	}
	size_t at = last > 0 ? last : object + 1;
	buf_add(out, s, at);
	buf_adds(out, last > 0 ? "," : "");
	put_members(out, path, deep, value);
	if (last == 0) {
		put_indent(out, deep - 1);
		at = skip_blank(s, at);
	}
	buf_add(out, s + at, len - at);
	return 0;
}

static int check_json(const char *text, size_t len, struct ssb_error *err)
{
	AUTO(json_doc_done) struct json_doc doc = { 0 };
	const char *why = NULL;

	if (json_read(&doc, text, len, &why) != 0) {
		return ssb_fail(err, SSB_E_POLICY, 0, "",
		                "it is not plain JSON (comments?): %s; add the server by hand",
		                why);
	}
	return json_is(json_top(&doc), JSON_OBJECT) ? 0
	                                            : refuse_edit(err, "it is not a JSON object");
}

int config_edit_json(const char *text, size_t len, const char *const path[], const char *value,
                     struct buf *out, struct ssb_error *err)
{
	bool empty = text == NULL || skip_blank(text, 0) >= len;
	const char *s = empty ? "{}\n" : text;
	size_t n = empty ? strlen(s) : len;

	if (empty && value == NULL) {
		buf_add(out, text != NULL ? text : "", text != NULL ? len : 0);
		return 0;
	}
	if (check_json(s, n, err) != 0 || edit_json(s, n, path, value, out, err) != 0) {
		return -1;
	}
	/* The check of the result finds a name that exists twice, or that was written with escapes.
	 */
	return out->failed ? ssb_fail(err, SSB_E_NOMEM, 0, "", "out of memory")
	                   : check_json(out->data, out->len, err);
}

static size_t find_line_end(const char *s, size_t len, size_t at)
{
	const char *nl = memchr(s + at, '\n', len - at);

	return nl != NULL ? (size_t)(nl - s) + 1 : len;
}

/* Returns 1 if the line is the header "[name]", 2 if it is the header of a table inside of `name`,
 * else 0. */
static int find_header(const char *s, size_t at, size_t end, const char *name)
{
	size_t len = strlen(name);

	at += strspn(s + at, " \t");
	if (at + len + 2 > end || s[at] != '[' || memcmp(s + at + 1, name, len) != 0) {
		return 0;
	}
	return s[at + 1 + len] == ']' ? 1 : s[at + 1 + len] == '.' ? 2 : 0;
}

struct table {
	size_t from; /* where the table's mark begins, or its header if it has no mark */
	size_t body;
	size_t to; /* where the next table begins, with the comments above it */
	bool found;
	bool ours;
	bool strange; /* the name occurs in a form that this parser does not understand */
};

static bool is_key(const char *line, size_t len, const char *key, size_t n)
{
	return len >= n && memcmp(line, key, n) == 0 &&
	       (len == n ||
	        (isalnum((unsigned char)line[n]) == 0 && line[n] != '_' && line[n] != '-'));
}

/* Does the line set the table, or the table above it, without a header: server = {...}, "server" =
 * ..., servers.server.command = ...? */
static bool names_another_way(const char *line, size_t len, const char *name)
{
	const char *last = strrchr(name, '.') + 1;
	size_t quote = len > 0 && (line[0] == '"' || line[0] == '\'');

	return is_key(line + quote, len - quote, last, strlen(last)) ||
	       is_key(line + quote, len - quote, name, (size_t)(last - name) - 1);
}

/* Finds the table in the text. A multi-line string could contain a line that looks like a header,
 * so any such string sets `strange`. */
static struct table find_table(const char *s, size_t len, const char *name, const char *mark)
{
	struct table t = { 0 };
	const char *short_name = strrchr(name, '.') + 1;
	size_t before = 0;
	bool marked = false, within = false;

	t.strange = memmem(s, len, "\"\"\"", 3) != NULL || memmem(s, len, "'''", 3) != NULL;
	for (size_t at = 0, end; at < len; before = at, at = end) {
		end = find_line_end(s, len, at);
		size_t first = at + strspn(s + at, " \t");
		int kind = find_header(s, at, end, name);
		bool header = first < end && s[first] == '[';
		if (kind == 1 && !t.found) {
			t = (struct table){ .from = marked ? before : at,
				            .body = end,
				            .to = end,
				            .found = true,
				            .ours = marked,
				            .strange = t.strange };
			within = true;
		} else if (kind != 0 || (!header && !within &&
		                         names_another_way(s + first, end - first, name))) {
			t.strange = true;
		} else if (header) {
			within = false;
			t.strange = t.strange || memmem(s + at, end - at, short_name,
			                                strlen(short_name)) != NULL;
		}
		if (within && first < end && s[first] != '\n' && s[first] != '#') {
			t.to = end;
		}
		marked = strncmp(s + at, mark, strlen(mark)) == 0;
	}
	return t;
}

static int check_toml(const char *text, size_t len, struct ssb_error *err)
{
	unsigned line = 0;
	const char *why = toml_check(text, len, &line);
	char where[16];

	if (why == NULL) {
		return 0;
	}
	snprintf(where, sizeof(where), ":%u", line);
	return ssb_fail(err, SSB_E_POLICY, 0, where, "it is not valid TOML: %s; correct it first",
	                why);
}

int config_edit_toml(const char *text, size_t len, const char *name, const char *mark,
                     const char *body, struct buf *out, struct ssb_error *err)
{
	const char *s = text != NULL ? text : "";
	size_t n = text != NULL ? len : 0;

	if (check_toml(s, n, err) != 0) {
		return -1;
	}
	struct table t = find_table(s, n, name, mark);
	if (t.found && !t.strange && body != NULL && t.to - t.body == strlen(body) &&
	    memcmp(s + t.body, body, t.to - t.body) == 0) {
		buf_add(out, s, n);
		return 0;
	}
	if (t.strange || (t.found && !t.ours)) {
		return ssb_fail(err, SSB_E_POLICY, 0, "",
		                t.strange
		                        ? CANNOT_TELL
		                        : "[%s] exists already, and skillsandbox did not write it; "
		                          "change it by hand",
		                name);
	}
	buf_add(out, s, t.found ? t.from : n);
	if (body != NULL) {
		if (!t.found && n > 0) {
			buf_adds(out, s[n - 1] == '\n' ? "\n" : "\n\n");
		}
		buf_addf(out, "%s\n[%s]\n%s", mark, name, body);
	} else if (t.found && out->len > 0 && t.to == n) {
		/* Removes the empty line that an earlier edit added before the table. */
		while (out->len > 1 && out->data[out->len - 1] == '\n' &&
		       out->data[out->len - 2] == '\n') {
			out->data[--out->len] = '\0';
		}
	}
	if (t.found) {
		buf_add(out, s + t.to, n - t.to);
	}
	if (out->failed) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "", "out of memory");
	}
	/* The check of the result finds an array that contains a line that looks like a header: the
	 * table would have ended there. */
	unsigned line = 0;
	return toml_check(out->data != NULL ? out->data : "", out->len, &line) == NULL
	               ? 0
	               : ssb_fail(err, SSB_E_POLICY, 0, "", CANNOT_TELL, name);
}

static void put_lines(struct buf *out, char sign, const char *text)
{
	while (*text != '\0') {
		size_t len = strcspn(text, "\n");
		buf_addc(out, sign);
		buf_add(out, text, len);
		buf_addc(out, '\n');
		text += len + (text[len] == '\n');
	}
}

void config_edit_diff(const char *before, const char *after, struct buf *out)
{
	AUTO(line_edits_done) struct line_edits e = { 0 };

	if (line_diff(before, strlen(before), after, strlen(after), AROUND, &e) != 0) {
		put_lines(out, '-', before);
		put_lines(out, '+', after);
	}
	for (size_t i = 0; i < e.n; i++) {
		if (e.v[i].op != '@') {
			buf_addc(out, e.v[i].op);
			buf_add(out, e.v[i].text, e.v[i].len);
			buf_addc(out, '\n');
		} else if (i > 0) {
			buf_adds(out, " ...\n");
		}
	}
}
