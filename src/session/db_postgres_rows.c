#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "session/db_postgres.h"

void pg_params_fill(struct pg_params *p, const struct db_value *args, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct db_value *v = &args[i];
		p->formats[i] = 1;
		p->numbers[i] = htobe64((uint64_t)v->i);
		if (v->type == DB_INT) {
			p->types[i] = PG_INT8;
			p->values[i] = (const char *)&p->numbers[i];
			p->lengths[i] = sizeof(p->numbers[i]);
		} else if (v->type == DB_TEXT) {
			p->types[i] = PG_TEXT;
			p->values[i] = v->s;
			p->lengths[i] = (int)v->n;
		} else {
			p->types[i] = 0; /* the server finds out */
			p->values[i] = NULL;
			p->lengths[i] = 0;
		}
	}
}

/* Sums are `numeric` here, and truths are t and f: SQLite has numbers for both. */
static int read_number(const char *text, unsigned type, int64_t *ret)
{
	char *end = NULL;

	if (type == PG_BOOL) {
		*ret = text[0] == 't' ? 1 : 0;
		return 0;
	}
	errno = 0;
	long long v = strtoll(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0') {
		return -1;
	}
	*ret = v;
	return 0;
}

static int read_value(const struct pq *pq, const struct pg_result *r, int row, int column,
                      struct db_value *ret)
{
	unsigned type = pq->ftype(r, column);
	const char *text = pq->getvalue(r, row, column);

	*ret = (struct db_value){ .type = DB_NULL };
	if (pq->getisnull(r, row, column) != 0) {
		return 0;
	}
	switch (type) {
	case PG_BOOL:
	case PG_INT8:
	case PG_INT4:
	case PG_INT2:
	case PG_NUMERIC:
		ret->type = DB_INT;
		return read_number(text, type, &ret->i);
	default:
		ret->type = DB_TEXT;
		ret->s = text;
		ret->n = (size_t)pq->getlength(r, row, column);
		return 0;
	}
}

int pg_rows(const struct pq *pq, const struct pg_result *r, db_row_fn *row, void *arg,
            struct ssb_error *err)
{
	struct db_value v[DB_MAX_COLS];
	int n = pq->nfields(r);

	if (n > DB_MAX_COLS) {
		return ssb_fail(err, SSB_E_LIMIT, 0, DB_WHERE, "a row of %d columns", n);
	}
	for (int i = 0; i < pq->ntuples(r); i++) {
		for (int k = 0; k < n; k++) {
			if (read_value(pq, r, i, k, &v[k]) != 0) {
				return ssb_fail(err, SSB_E_SYS, 0, DB_WHERE,
				                "a number in the store is out of range");
			}
		}
		if (row(arg, v, (size_t)n) != 0) {
			break;
		}
	}
	return 0;
}

int64_t pg_changes(const struct pq *pq, struct pg_result *r)
{
	int64_t n = 0;

	/* Of a SELECT the server counts the rows, which are no changes. */
	if (strncmp(pq->cmdStatus(r), "SELECT", 6) != 0) {
		(void)read_number(pq->cmdTuples(r), PG_INT8, &n);
	}
	return n;
}
