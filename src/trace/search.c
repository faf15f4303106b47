/* search.c - see search.h. */
#include "trace/search.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/own.h"
#include "policy/path.h"

bool search_is_empty(const struct search *s)
{
	return s->path == NULL && s->host == NULL && s->reason == REASON_NONE &&
	       s->class == CLASS_NONE;
}

static bool has_path(const struct line *l, const char *path)
{
	static const char *const MEMBERS[] = { "path", "path2", "leads_to" };

	for (size_t i = 0; i < ARRAY_LEN(MEMBERS); i++) {
		const char *text = line_text(l, MEMBERS[i]);
		if (text != NULL && path_beneath(text, path) != NULL) {
			return true;
		}
	}
	return false;
}

static bool is_host(const char *name, const char *host)
{
	size_t n = strlen(name), m = strlen(host);

	return n >= m && strcasecmp(name + n - m, host) == 0 && (n == m || name[n - m - 1] == '.');
}

static bool has_host(const struct line *l, const char *host)
{
	const char *name = line_text(l, "name"), *address = line_text(l, "address");

	return (name != NULL && is_host(name, host)) ||
	       (address != NULL && strcasecmp(address, host) == 0);
}

static bool line_matches(const struct search *s, const struct line *l)
{
	return (s->path == NULL || has_path(l, s->path)) &&
	       (s->host == NULL || has_host(l, s->host)) &&
	       (s->reason == REASON_NONE || line_get_reason(l) == s->reason);
}

static bool has_class(const struct classes *found, enum class_id class)
{
	struct classes all;

	classes_derive(found, &all);
	return class == CLASS_NONE || all.hits[class].count > 0;
}

bool search_matches(const struct search *s, int fd, bool *ret_whole)
{
	AUTO(reader_done) struct reader in;
	AUTO(line_done) struct line l = { 0 };
	struct classes found;
	char home[PATH_MAX] = "";
	const char *text = NULL;
	const char *why = NULL;
	size_t len = 0;
	bool any = s->path == NULL && s->host == NULL && s->reason == REASON_NONE;

	classes_init(&found, home);
	reader_init(&in, fd, 0);
	enum reader_line got = READER_END;
	while (!(any && s->class == CLASS_NONE) &&
	       (got = reader_next(&in, &text, &len)) == READER_LINE &&
	       line_parse(&l, text, len, &why) == 0) {
		if (l.kind == EV_RUN && line_home(&l) != NULL) {
			snprintf(home, sizeof(home), "%s", line_home(&l));
		}
		any = any || line_matches(s, &l);
		classes_add_line(&found, &l);
	}
	bool matches = any && has_class(&found, s->class);
	*ret_whole = matches || got == READER_END || got == READER_CUT;
	return matches;
}
