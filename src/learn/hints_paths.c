/* hints_paths.c - finds paths of the home in a line of a skill's file. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/own.h"
#include "learn/hints_priv.h"
#include "policy/danger.h"

/* Takes a text such as "~/notes/a.md" and adds this path: as a need to write if the rest of the
 * line looks like code that writes, otherwise to read. For a pattern, adds its directory. */
static void add_path(struct hint_scan *s, char *text, const char *rest, const char *end)
{
	static const char *const WRITES[] = { "\"w", "'w", "\"a", "'a", "write", "mkdir" };
	auto_free char *path = NULL;
	char *pattern = strpbrk(text, "*?[");

	if (pattern != NULL) {
		*pattern = '\0';
		char *slash = strrchr(text, '/');
		*slash = '\0'; /* there is one: the text begins with "~/" */
	}
	if (strlen(text) < 3 || strpbrk(text, "{}$%<>") != NULL ||
	    check_path(text, &path) != NULL || strcmp(path, "~") == 0) {
		return;
	}
	bool write = ARRAY_HAS(e, WRITES, ARRAY_LEN(WRITES),
	                       memmem(rest, (size_t)(end - rest), *e, strlen(*e)) != NULL);
	struct need n = { .kind = write ? NEED_WRITE : NEED_READ,
		          .value = path,
		          .makes_dirs = s->makes_dirs,
		          .danger = danger_around(path, write ? ACCESS_WRITE : ACCESS_READ) };
	hints_add(s, &n);
}

/* Finds "~/..." and "$HOME/...": in quotes, and in a shell also without them. */
static void find_whole(struct hint_scan *s, const char *line, const char *end)
{
	static const char *const HOMES[] = { "~/", "$HOME/", "${HOME}/" };

	for (size_t i = 0; i < ARRAY_LEN(HOMES); i++) {
		size_t n = strlen(HOMES[i]);
		const char *p = line;
		for (; (p = memmem(p, (size_t)(end - p), HOMES[i], n)) != NULL; p += n) {
			char quote = p > line ? p[-1] : ' ';
			bool quoted = quote == '"' || quote == '\'';
			const char *from = p + n, *q = from;
			if (!quoted && (s->kind != TEXT_SHELL || strchr(" =", quote) == NULL)) {
				continue;
			}
			while (q < end &&
			       (quoted ? *q != quote : strchr(" \t;|&()<>\"'`", *q) == NULL)) {
				q++;
			}
			char *text = NULL;
			if (q == from || (quoted && q == end)) {
				continue;
			}
			if (asprintf(&text, "~/%.*s", (int)(q - from), from) < 0) {
				s->nomem = true;
				return;
			}
			add_path(s, text, q, end);
			free(text);
		}
	}
}

/* Finds paths that are made of parts: `Path.home() / "notes" / "a.md"`,
 * `join(homedir(), 'notes')`. */
static void find_parts(struct hint_scan *s, const char *line, const char *end)
{
	static const char *const HOMES[] = { "Path.home()",       "homedir()",
		                             "expanduser(\"~\")", "expanduser('~')",
		                             "environ[\"HOME\"]", "environ['HOME']",
		                             "process.env.HOME" };

	for (size_t i = 0; i < ARRAY_LEN(HOMES); i++) {
		const char *p = memmem(line, (size_t)(end - line), HOMES[i], strlen(HOMES[i]));
		auto_buf text = BUF(MAX_LINE);
		if (p == NULL) {
			continue;
		}
		const char *after = p + strlen(HOMES[i]);
		buf_adds(&text, "~");
		for (const char *q = after;; q = after) {
			const char *call = hints_skip(q, end, ")");
			q = hints_begin(call, end, ".joinpath(")
			            ? call + strlen(".joinpath(")
			            : hints_skip(q, end, i == 0 ? " /" : " ,/+");
			auto_free char *part = hints_quoted(s, q, end, &after);
			if (part == NULL) {
				break;
			}
			buf_addf(&text, "/%s", part[0] == '/' ? part + 1 : part);
		}
		if (text.data != NULL && text.len > 1 && !text.failed) {
			add_path(s, text.data, after, end);
		}
	}
}

void hints_find_paths(struct hint_scan *s, const char *line, const char *end)
{
	find_whole(s, line, end);
	find_parts(s, line, end);
}
