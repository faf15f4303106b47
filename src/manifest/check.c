/* check.c - checks of single values: texts, paths, names of variables. */
#include "manifest/check.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/own.h"
#include "manifest/manifest.h"

const char *check_text(const char *s, char **ret)
{
	char *p = strdup(s);

	if (p == NULL) {
		return CHECK_NOMEM;
	}
	*ret = p;
	return NULL;
}

static bool has_control(const char *s)
{
	for (; *s != '\0'; s++) {
		if ((unsigned char)*s < 0x20 || *s == 0x7f) {
			return true;
		}
	}
	return false;
}

const char *check_line(const char *s, char **ret)
{
	if (has_control(s)) {
		return "has a line break or tab in it; write one line";
	}
	return check_text(s, ret);
}

const char *check_command(const char *s, char **ret)
{
	if (s[0] == '\0') {
		return "is empty; name a program, such as python3";
	}
	return check_line(s, ret);
}

const char *check_version(const char *s, char **ret)
{
	if (s[0] == '\0') {
		return "is empty; write a version, such as \"1.0.0\"";
	}
	if (strlen(s) > MAX_NAME_BYTES) {
		return "is longer than 128 bytes; shorten it";
	}
	return check_line(s, ret);
}

const char *check_name(const char *s, char **ret)
{
	size_t len = strlen(s);

	if (len == 0) {
		return "is empty; give the skill a name, such as weather";
	}
	if (len > MAX_NAME_BYTES) {
		return "is longer than 128 bytes; shorten it";
	}
	if (strchr(s, '/') != NULL) {
		return "has a \"/\" in it; use letters, digits, \"-\" and \"_\"";
	}
	if (s[0] == ' ' || s[len - 1] == ' ') {
		return "begins or ends with a space; remove it";
	}
	if (strcmp(s, ".") == 0 || strcmp(s, "..") == 0) {
		return "is not a name; use letters, digits, \"-\" and \"_\"";
	}
	return check_line(s, ret);
}

/* Judging a path opens each of its directories, so their number is limited. */
static bool is_deep(const char *path)
{
	size_t n = 0;

	for (; *path != '\0'; path++) {
		n += *path == '/';
	}
	return n > MAX_PATH_DEPTH;
}

/* Copies `s` without empty and "." components. Returns false if a component is "..". */
static bool path_normalise(const char *s, char *out)
{
	size_t n = 0;

	if (*s == '~') {
		out[n++] = *s++;
	}
	for (;;) {
		s += strspn(s, "/");
		size_t part = strcspn(s, "/");
		if (part == 0) {
			break;
		}
		if (part == 2 && s[0] == '.' && s[1] == '.') {
			return false;
		}
		if (part > 1 || s[0] != '.') {
			out[n++] = '/';
			memcpy(out + n, s, part);
			n += part;
		}
		s += part;
	}
	if (n == 0) {
		out[n++] = '/';
	}
	out[n] = '\0';
	return true;
}

const char *check_path(const char *s, char **ret)
{
	size_t len = strlen(s);

	if (len == 0) {
		return "is empty; write an absolute path, or one that begins with ~/";
	}
	if (len >= MAX_PATH_BYTES) {
		return "is longer than a path can be; shorten it";
	}
	if (has_control(s)) {
		return "has a control character in it; remove it";
	}
	if (s[0] == '~' && s[1] != '/' && s[1] != '\0') {
		return "names another user's home; write the absolute path";
	}
	if (s[0] == '$') {
		return "begins with a variable, and variables are not expanded in paths; write ~/ "
		       "for the home directory";
	}
	if (s[0] != '/' && s[0] != '~') {
		return "is not absolute; begin it with / or ~/";
	}
	/* The normalised path is never longer than `s`, which begins with "/" or "~". */
	auto_free char *out = malloc(len + 2);
	if (out == NULL) {
		return CHECK_NOMEM;
	}
	if (!path_normalise(s, out)) {
		return "has \"..\" in it; write the path that it leads to";
	}
	if (is_deep(out)) {
		return "has more than 128 directories in it; shorten it";
	}
	*ret = steal_ptr(&out);
	return NULL;
}

const char *check_workdir(const char *s, char **ret)
{
	if (s[0] != '/' && s[0] != '\0') {
		return "is not absolute; the skill's own files are under /skill";
	}
	return check_path(s, ret);
}

const char *check_env_name(const char *s)
{
	if (s[0] == '\0') {
		return "is empty; name a variable, such as LANG";
	}
	if (strpbrk(s, "*?[") != NULL) {
		return "has a wildcard in it; name each variable in full";
	}
	if (strchr(s, '=') != NULL) {
		return "has a value in it; write only the name";
	}
	if (s[0] == '$') {
		return "begins with \"$\"; write the name without it";
	}
	for (const char *p = s; *p != '\0'; p++) {
		bool letter = (*p >= 'A' && *p <= 'Z') || (*p >= 'a' && *p <= 'z') || *p == '_';
		if (!letter && (p == s || *p < '0' || *p > '9')) {
			return "is not a variable's name; use letters, digits and \"_\", and do "
			       "not begin with a digit";
		}
	}
	return NULL;
}

const char *check_env(const char *s, char **ret)
{
	const char *problem = check_env_name(s);

	return problem != NULL ? problem : check_text(s, ret);
}
