/* watchdog_workers.h - helpers and workers of test_watchdog. */
#ifndef TESTS_UNIT_WATCHDOG_WORKERS_H
#define TESTS_UNIT_WATCHDOG_WORKERS_H

#include <stddef.h>

#define MIB   (1024ULL * 1024)
#define LIMIT (96 * MIB)
#define FITS  (60 * MIB)  /* once, this is below LIMIT; twice, it is above */
#define BIG   (128 * MIB) /* above LIMIT */

extern int ready_fd; /* the worker writes "0" when it is set up, and "1" if that failed */

char *map(size_t bytes, int flags, int fd);

/* ---- workers with memory of every kind (watchdog_memory.c); they return 0 when set up ---- */

int idle(void);
int anon_fits(void);
int anon_big(void);
int anon_cow(void);
int anon_cow_pool(void);
int anon_behind_pool(void);
int anon_cow_written(void);
int shared_anon_fits(void);
int shared_anon_big(void);
int memfd_fits(void);
int memfd_big(void);
int memfd_two(void);
int memfd_mapped(void);
int memfd_beside_shared(void);
int memfd_mapped_and_closed(void);
int memfd_non_dumpable(void);
int memfd_fits_non_dumpable(void);
int anon_non_dumpable(void);
int memfd_behind_many(void);
int scratch_big(void);
int scratch_mapped(void);
int sysv_fits(void);
int sysv_detached(void);
int semaphores(void);
int messages(void);
int tables_fit(void);
int tables_big(void);
int file_pages(void);
int vforked(void);
int churn(void);

/* ---- workers with threads (watchdog_threads.c); they return 0 when set up ----- */

int leader_gone_fits(void);
int leader_gone_anon(void);
int leader_gone_memfd(void);
int leader_gone_memfd_mapped(void);
int leader_gone_anon_non_dumpable(void);
int leader_gone_memfd_non_dumpable(void);
int leader_gone_relay(void);
int own_table_fits(void);
int own_table_memfd(void);
int own_table_and_anon(void);
int own_table_memfd_non_dumpable(void);
int own_table_of_many(void);
int own_tables_with_many_fds(void);
int threads_fits(void);

#endif
