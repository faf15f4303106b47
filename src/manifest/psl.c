/* psl.c - searches the table of public suffixes.
 *
 * The table is one sorted array of NUL-terminated rules, which tools/gen-psl.py makes at build
 * time. It contains no pointers, so it needs no relocations and no start-up time, and its pages are
 * read only when a wildcard is checked. Rules are written from the top-level label down ("uk.co"),
 * so that all rules beneath a name stand together. "ck.*" is a wildcard rule, "ck.www!" an
 * exception. */
#include "manifest/psl.h"

#include <stddef.h>
#include <string.h>

#include "manifest/psl_table.h"

#define PSL_MAX_NAME 253

/* Turns "www.example.com" into "com.example.www". Returns false if the name is empty or too
 * long. */
static bool reverse_labels(const char *name, char ret[PSL_MAX_NAME + 1])
{
	size_t left = strlen(name);
	size_t out = 0;

	if (left == 0 || left > PSL_MAX_NAME) {
		return false;
	}
	while (left > 0) {
		size_t start = left;
		while (start > 0 && name[start - 1] != '.') {
			start--;
		}
		memcpy(ret + out, name + start, left - start);
		out += left - start;
		left = start;
		if (left > 0) {
			ret[out++] = '.';
			left--;
		}
	}
	ret[out] = '\0';
	return true;
}

/* Returns the first rule that does not sort before `key`; NULL if there is none. */
static const char *lower_bound(const char *key)
{
	size_t low = 0;
	size_t high = sizeof(PSL_RULES) - 1; /* the literal's own NUL is not a rule */

	while (low < high) { /* `low` and `high` are the start of a rule or the end of the table */
		size_t mid = low + (high - low) / 2;
		while (mid > low && PSL_RULES[mid - 1] != '\0') {
			mid--;
		}
		if (strcmp(PSL_RULES + mid, key) < 0) {
			low = mid + strlen(PSL_RULES + mid) + 1;
		} else {
			high = mid;
		}
	}
	return low < sizeof(PSL_RULES) - 1 ? PSL_RULES + low : NULL;
}

/* True if there is a rule that consists of `head` (`len` bytes) and `tail`. */
static bool has_rule(const char *head, size_t len, const char *tail)
{
	char key[PSL_MAX_NAME + 4];
	size_t tail_len = strlen(tail);

	if (len + tail_len >= sizeof(key)) {
		return false;
	}
	memcpy(key, head, len);
	memcpy(key + len, tail, tail_len + 1);
	const char *rule = lower_bound(key);
	return rule != NULL && strcmp(rule, key) == 0;
}

bool psl_is_suffix(const char *name)
{
	char key[PSL_MAX_NAME + 1];

	if (!reverse_labels(name, key)) {
		return false;
	}
	const char *last_dot = strrchr(key, '.');
	if (last_dot == NULL) {
		/* every top-level label is a public suffix, even if the table does not have it */
		return true;
	}
	if (has_rule(key, strlen(key), "!")) {
		return false;
	}
	return has_rule(key, strlen(key), "") || has_rule(key, (size_t)(last_dot - key), ".*");
}

bool psl_has_suffix_beneath(const char *name)
{
	char key[PSL_MAX_NAME + 2];

	if (!reverse_labels(name, key)) {
		return false;
	}
	size_t len = strlen(key);
	key[len++] = '.';
	key[len] = '\0';
	const char *rule = lower_bound(key);
	return rule != NULL && strncmp(rule, key, len) == 0;
}
