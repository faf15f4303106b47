/* values.h - readers of the values that the files of sessions have beside those
 * of manifest/values.h. Each leaves `*at` alone when the value is refused, which
 * it reports. */
#ifndef SESSION_VALUES_H
#define SESSION_VALUES_H

#include "manifest/levels.h"
#include "session/policy.h"

#define ROW_READER(name)                                                                           \
	void name(struct ctx *c, const struct ynode *n, const struct field *f, void *at)

ROW_READER(read_money);    /* micros, from the text itself */
ROW_READER(read_ppm);      /* unsigned: a part of one, 0 to 1, in millionths */
ROW_READER(read_duration); /* uint64_t in ms, from min to max */
ROW_READER(read_seconds);  /* uint64_t in ms; written as whole seconds, min and max too */
ROW_READER(read_size);     /* uint64_t: bytes, also as 10MB */
ROW_READER(read_flag);     /* bool */
ROW_READER(read_act);      /* enum session_act */
ROW_READER(read_short);    /* char[max]: one line that fits, and not empty */
ROW_READER(read_ignored);  /* nothing: a key of the known schema without a meaning here */

/* A text in one line that is not empty; new, or NULL (reported). What is wrong
 * is said without the text: it may be a secret. */
char *node_secret(struct ctx *c, const struct ynode *n, const struct field *f);

#endif
