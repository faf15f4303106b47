/* words.h - a small set of words. */
#ifndef MCP_WORDS_H
#define MCP_WORDS_H

#include "base/json.h"

struct words {
	char **v;
	size_t n;
};

bool words_has(const struct words *w, const char *word);
int words_add(struct words *w, const char *word); /* once, however often. -1: no memory */
void words_remove(struct words *w, const char *word);
void words_done(struct words *w);
void words_write(const struct words *w, const char *key, struct json *j); /* an array */

#endif
