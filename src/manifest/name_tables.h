/* name_tables.h - the tables behind profile_name() and protocol_name(). */
#ifndef MANIFEST_NAME_TABLES_H
#define MANIFEST_NAME_TABLES_H

#define N_PROFILES    3
#define N_PROTOCOLS   4
#define N_NAMED_FILES 2

extern const char *const PROFILE_NAMES[N_PROFILES + 1]; /* ends with NULL */
extern const char *const PROTOCOL_NAMES[N_PROTOCOLS];
extern const char *const NAMED_FILES_NAMES[N_NAMED_FILES]; /* from NAMED_READ on */

#endif
