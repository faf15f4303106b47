/* watchdog_workers.h - what the workers of test_watchdog are made of. */
#ifndef TESTS_UNIT_WATCHDOG_WORKERS_H
#define TESTS_UNIT_WATCHDOG_WORKERS_H

#include <stddef.h>

#define MIB   (1024ULL * 1024)
#define LIMIT (96 * MIB)
#define FITS  (60 * MIB)  /* once, but not twice */
#define BIG   (128 * MIB) /* not even once */

extern int ready_fd; /* "0": set up, "1": failed */

char *map(size_t bytes, int flags, int fd);
int anon_fits(void);
int anon_big(void);
int memfd_fits(void);
int memfd_big(void);
int memfd_mapped(void);

/* ---- workers with threads (watchdog_threads.c); 0 when set up ------------- */

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
