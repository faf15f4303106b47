/* db_sqlite_log.c - the log of a store: one write for each commit.
 *
 * SQLite writes every page of a commit to its log twice, a header of 24 bytes and the
 * page: some ten writes, which touch the same few blocks again and again. Each costs
 * about as much as what was decided. They follow each other: here they are kept until
 * the log is synced, and written at once. Everything else of SQLite's own file system
 * is as it was.
 *
 * The log must be synced by every commit, before others are told of it: that is what
 * synchronous = FULL says. Nothing that was kept is ever read past: whatever else is
 * asked of the file has it written first. */
#include <stdlib.h>
#include <string.h>

#include "session/db_sqlite.h"

#define KEPT_BYTES ((size_t)64 << 10)

struct log_file {
	sqlite3_file file;  /* SQLite's view of it: first */
	sqlite3_file *real; /* in the same memory, behind */
	char *kept;
	size_t n_kept;
	sqlite3_int64 at; /* where that belongs */
};

static struct {
	sqlite3_vfs vfs;
	sqlite3_vfs *real;
} own;

/* `file` is the first member. */
static struct log_file *of(sqlite3_file *file)
{
	return (struct log_file *)(void *)file;
}

/* What could not be written is dropped, as the transaction will be. */
static int write_kept(struct log_file *f)
{
	size_t n = f->n_kept;

	f->n_kept = 0;
	return n > 0 ? f->real->pMethods->xWrite(f->real, f->kept, (int)n, f->at) : SQLITE_OK;
}

static int log_write(sqlite3_file *file, const void *data, int n, sqlite3_int64 at)
{
	struct log_file *f = of(file);
	size_t len = (size_t)n;

	if (at != f->at + (sqlite3_int64)f->n_kept || len > KEPT_BYTES - f->n_kept) {
		int rc = write_kept(f);
		if (rc != SQLITE_OK) {
			return rc;
		}
		f->at = at;
	}
	if (len > KEPT_BYTES) {
		return f->real->pMethods->xWrite(f->real, data, n, at);
	}
	memcpy(f->kept + f->n_kept, data, len);
	f->n_kept += len;
	return SQLITE_OK;
}

static int log_sync(sqlite3_file *file, int flags)
{
	struct log_file *f = of(file);
	int rc = write_kept(f);

	return rc != SQLITE_OK ? rc : f->real->pMethods->xSync(f->real, flags);
}

static int log_read(sqlite3_file *file, void *ret, int n, sqlite3_int64 at)
{
	struct log_file *f = of(file);
	int rc = write_kept(f);

	return rc != SQLITE_OK ? rc : f->real->pMethods->xRead(f->real, ret, n, at);
}

static int log_truncate(sqlite3_file *file, sqlite3_int64 size)
{
	struct log_file *f = of(file);
	int rc = write_kept(f);

	return rc != SQLITE_OK ? rc : f->real->pMethods->xTruncate(f->real, size);
}

static int log_size(sqlite3_file *file, sqlite3_int64 *ret)
{
	struct log_file *f = of(file);
	int rc = write_kept(f);

	return rc != SQLITE_OK ? rc : f->real->pMethods->xFileSize(f->real, ret);
}

static int log_control(sqlite3_file *file, int what, void *arg)
{
	struct log_file *f = of(file);
	int rc = write_kept(f);

	return rc != SQLITE_OK ? rc : f->real->pMethods->xFileControl(f->real, what, arg);
}

static int log_sector(sqlite3_file *file)
{
	return of(file)->real->pMethods->xSectorSize(of(file)->real);
}

static int log_device(sqlite3_file *file)
{
	return of(file)->real->pMethods->xDeviceCharacteristics(of(file)->real);
}

static int log_close(sqlite3_file *file)
{
	struct log_file *f = of(file);

	/* Of a transaction that was not committed. */
	f->n_kept = 0;
	free(f->kept);
	return f->real->pMethods->xClose(f->real);
}

/* A log is not locked: that is done by the file of the store. */
static const sqlite3_io_methods LOG_METHODS = {
	.iVersion = 1,
	.xClose = log_close,
	.xRead = log_read,
	.xWrite = log_write,
	.xTruncate = log_truncate,
	.xSync = log_sync,
	.xFileSize = log_size,
	.xFileControl = log_control,
	.xSectorSize = log_sector,
	.xDeviceCharacteristics = log_device,
};

static int log_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags,
                    int *ret_flags)
{
	struct log_file *f = of(file);

	(void)vfs;
	if ((flags & SQLITE_OPEN_WAL) == 0) {
		return own.real->xOpen(own.real, path, file, flags, ret_flags);
	}
	memset(f, 0, sizeof(*f));
	f->real = (sqlite3_file *)(void *)(f + 1);
	f->kept = malloc(KEPT_BYTES);
	if (f->kept == NULL) {
		return SQLITE_NOMEM;
	}
	int rc = own.real->xOpen(own.real, path, f->real, flags, ret_flags);
	if (rc != SQLITE_OK) {
		free(f->kept);
		return rc;
	}
	f->file.pMethods = &LOG_METHODS;
	return SQLITE_OK;
}

const char *db_sqlite_log(const struct sqlite *sql)
{
	if (own.real == NULL) {
		sqlite3_vfs *real = sql->vfs_find(NULL);
		if (real == NULL) {
			return NULL;
		}
		own.vfs = *real;
		own.vfs.zName = "skillsandbox";
		own.vfs.pNext = NULL;
		own.vfs.szOsFile = (int)sizeof(struct log_file) + real->szOsFile;
		own.vfs.xOpen = log_open;
		if (sql->vfs_register(&own.vfs, 0) != SQLITE_OK) {
			return NULL;
		}
		own.real = real;
	}
	return own.vfs.zName;
}
