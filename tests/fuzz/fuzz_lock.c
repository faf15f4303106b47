/* Reads an approval from arbitrary bytes: if it is accepted, it must be possible to write it and to
 * read the same approval back. */
#include <string.h>

#include "fuzz.h"
#include "base/limits.h"
#include "base/own.h"
#include "consent/lock_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(lock_done) struct lock l = { 0 };
	AUTO(lock_done) struct lock again = { 0 };
	auto_buf once, twice;

	buf_init(&once, MAX_LOCK_BYTES);
	buf_init(&twice, MAX_LOCK_BYTES);
	if (lock_parse((const char *)data, size, &l) != NULL) {
		must(l.skill == NULL && l.files.v == NULL && l.grants == NULL);
		return 0;
	}
	must(l.skill[0] == '/' && l.files.n <= MAX_PINNED_FILES && l.uses >= -1);
	for (size_t i = 0; i < l.files.n; i++) {
		must(l.files.v[i].path[0] != '/' && strstr(l.files.v[i].path, "/../") == NULL);
	}
	lock_write(&once, &l);
	must(!once.failed && lock_parse(once.data, once.len, &again) == NULL);
	lock_write(&twice, &again);
	must(once.len == twice.len && memcmp(once.data, twice.data, once.len) == 0);
	return 0;
}
