/* library.c - loads shared libraries, such as SQLite and libpq. */
#include "os/library.h"

#include <dlfcn.h>
#include <string.h>

#include "base/error.h"
#include "base/own.h"
#include "os/pq.h"
#include "os/sqlite.h"

int library_load(const struct library *l, void *table, bool *loaded, const char *where,
                 struct ssb_error *err)
{
	if (*loaded) {
		return 0;
	}
	void *lib = dlopen(l->file, RTLD_NOW | RTLD_LOCAL);
	if (lib == NULL) {
		return ssb_fail(err, SSB_E_NOT_FOUND, 0, where,
		                "%s is not installed (%s); install the package %s", l->what,
		                l->file, l->package);
	}
	for (size_t i = 0; i < l->n_calls; i++) {
		void *call = dlsym(lib, l->calls[i].name);
		if (call == NULL) {
			return ssb_fail(err, SSB_E_NOT_FOUND, 0, where,
			                "%s is too old: it has no %s; upgrade the package %s",
			                l->what, l->calls[i].name, l->package);
		}
		memcpy((char *)table + l->calls[i].offset, &call, sizeof(call));
	}
	*loaded = true;
	return 0;
}

static const struct library_call SQLITE_TABLE[] = {
#define SQLITE_CALL(name) { "sqlite3_" #name, offsetof(struct sqlite, name) },
	SQLITE_CALLS(SQLITE_CALL)
#undef SQLITE_CALL
};

static const struct library SQLITE = { "libsqlite3.so.0", "SQLite", "libsqlite3-0", SQLITE_TABLE,
	                               ARRAY_LEN(SQLITE_TABLE) };

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

static const struct library_call PQ_TABLE[] = {
#define PQ_CALL(result, name, parameters) { "PQ" #name, offsetof(struct pq, name) },
	PQ_CALLS(PQ_CALL)
#undef PQ_CALL
};

static const struct library PQ = { "libpq.so.5", "the client of PostgreSQL", "libpq5", PQ_TABLE,
	                           ARRAY_LEN(PQ_TABLE) };

int pq_load(const char *where, const struct pq **ret, struct ssb_error *err)
{
	static struct pq table;
	static bool loaded;

	if (library_load(&PQ, &table, &loaded, where, err) != 0) {
		return -1;
	}
	*ret = &table;
	return 0;
}
