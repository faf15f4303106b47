#include "os/pq.h"

#include "base/own.h"
#include "os/library.h"

static const struct library_call CALLS[] = {
#define PQ_CALL(result, name, parameters) { "PQ" #name, offsetof(struct pq, name) },
	PQ_CALLS(PQ_CALL)
#undef PQ_CALL
};

static const struct library PQ = { "libpq.so.5", "the client of PostgreSQL", "libpq5", CALLS,
	                           ARRAY_LEN(CALLS) };

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
