#include "os/sqlite.h"

#include "base/own.h"
#include "os/library.h"

static const struct library_call CALLS[] = {
#define SQLITE_CALL(name) { "sqlite3_" #name, offsetof(struct sqlite, name) },
	SQLITE_CALLS(SQLITE_CALL)
#undef SQLITE_CALL
};

static const struct library SQLITE = { "libsqlite3.so.0", "SQLite", "libsqlite3-0", CALLS,
	                               ARRAY_LEN(CALLS) };

int sqlite_load(const char *where, const struct sqlite **ret, struct ssb_error *err)
{
	static struct sqlite table;
	static bool loaded;

	if (library_load(&SQLITE, &table, &loaded, where, err) != 0) {
		return -1;
	}
	*ret = &table;
	return 0;
}
