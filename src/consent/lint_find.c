/* lint_find.c - words in a line, and where a pipe ends. */
#include <stdint.h>
#include <string.h>

#include "base/own.h"
#include "consent/lint_priv.h"

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

static size_t find_one(const char *text, size_t len, size_t from, const char *what, size_t n)
{
	bool alone = n > 0 && what[0] == '^';

	what += alone;
	n -= alone;
	while (n > 0 && from + n <= len) {
		const char *hit = memmem(text + from, len - from, what, n);
		if (hit == NULL) {
			break;
		}
		size_t at = (size_t)(hit - text), end = at + n;
		char before = at > 0 ? text[at - 1] : ' ';
		bool left = !is_word(what[0]) || !is_word(before);
		bool right = !is_word(what[n - 1]) || end == len || !is_word(text[end]);
		if (left && right && !(alone && strchr("./-$", before) != NULL && before != '\0')) {
			return end;
		}
		from = at + 1;
	}
	return SIZE_MAX;
}

/* Mostly some letter of a word is nowhere in the line, and nobody has to look. */
static bool may_have(const struct lint_line *l, const char *what, size_t n)
{
	for (size_t i = what[0] == '^'; i < n; i++) {
		unsigned char c = (unsigned char)what[i];
		if ((l->has[c >> 6] >> (c & 63) & 1) == 0) {
			return false;
		}
	}
	return true;
}

size_t lint_find(const struct lint_line *l, bool tight, size_t from, const char *alternatives)
{
	const char *text = tight ? l->tight : l->low;
	size_t len = tight ? l->tight_len : l->len;
	size_t best = SIZE_MAX;

	for (const char *s = alternatives;;) {
		size_t n = strcspn(s, "\n");
		size_t end = may_have(l, s, n) ? find_one(text, len, from, s, n) : SIZE_MAX;
		best = end < best ? end : best;
		if (s[n] == '\0') {
			return best;
		}
		s += n + 1;
	}
}

/* ---- pipes ------------------------------------------------------------------------ */

static size_t skip_blanks(const char *text, size_t len, size_t at)
{
	while (at < len && (text[at] == ' ' || text[at] == '\t')) {
		at++;
	}
	return at;
}

/* The end of the word at `at`; quotes and what ends a command end it. */
static size_t word_end(const char *text, size_t len, size_t at)
{
	while (at < len && strchr(" \t\n|&;()<>\"'`", text[at]) == NULL) {
		at++;
	}
	return at;
}

static bool word_is(const char *text, size_t from, size_t to, const char *const words[], size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (strlen(words[i]) == to - from &&
		    memcmp(text + from, words[i], to - from) == 0) {
			return true;
		}
	}
	return false;
}

/* An interpreter that is given a program reads data; without one it reads a program. A
 * shell may have options and, behind -s, arguments. */
static bool reads_program(const char *text, size_t len, size_t at, bool shell)
{
	at = skip_blanks(text, len, at);
	size_t end = word_end(text, len, at);

	if (end == at || (end - at == 1 && text[at] == '-')) {
		return true;
	}
	if (!shell || text[at] != '-') {
		return false;
	}
	return memchr(text + at, 'c', text[at + 1] == '-' ? 0 : end - at) == NULL;
}

/* The command that begins at `at`: sudo and paths in front of it do not matter. */
static bool runs_input(const char *text, size_t len, size_t at)
{
	static const char *const before[] = { "sudo",  "env",  "exec",   "command",
		                              "nohup", "doas", "busybox" };
	static const char *const shells[] = { "sh", "bash", "zsh", "dash", "ksh", "ash", "fish" };
	static const char *const others[] = { "python", "python2", "python3", "perl", "ruby",
		                              "node",   "php",     "lua",     "bun",  "deno" };

	for (;;) {
		at = skip_blanks(text, len, at);
		size_t end = word_end(text, len, at);
		if (end == at) {
			return false;
		}
		size_t base = at;
		for (size_t i = at; i < end; i++) {
			base = text[i] == '/' ? i + 1 : base;
		}
		if (word_is(text, base, end, shells, ARRAY_LEN(shells))) {
			return reads_program(text, len, end, true);
		}
		if (word_is(text, base, end, others, ARRAY_LEN(others))) {
			return reads_program(text, len, end, false);
		}
		if (!word_is(text, base, end, before, ARRAY_LEN(before)) && text[at] != '-' &&
		    memchr(text + at, '=', end - at) == NULL) {
			return false;
		}
		at = end;
	}
}

bool lint_piped(const char *text, size_t len, size_t from)
{
	for (size_t i = from; i < len; i++) {
		if (text[i] == ';' || (text[i] == '&' && i + 1 < len && text[i + 1] == '&')) {
			return false;
		}
		if (text[i] != '|') {
			continue;
		}
		if (i + 1 < len && text[i + 1] == '|') {
			return false;
		}
		size_t at = i + 1 + (i + 1 < len && text[i + 1] == '&');
		if (runs_input(text, len, at)) {
			return true;
		}
	}
	return false;
}
