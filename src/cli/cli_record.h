/* cli_record.h - what the commands that read records have in common. */
#ifndef CLI_CLI_RECORD_H
#define CLI_CLI_RECORD_H

#include "trace/runs.h"
#include "trace/verify.h"
#include "cli/cli.h"
#include "policy/owner.h"

/* The owner, and the record that the first operand names. */
struct record_request {
	struct owner owner;
	struct run_file file;
};

#define RECORD_REQUEST_NONE                                                                        \
	{                                                                                          \
		.file = RUN_FILE_NONE                                                              \
	}

/* `fallback` names the record if there is no operand; NULL: an operand is needed. Prints the error
 * and returns the exit status, or returns 0. */
int cli_record_open(const struct request *r, const char *fallback, struct record_request *ret);
void cli_record_done(struct record_request *q);
/* Its name for messages: the short id, or the path. */
const char *cli_record_name(const struct record_request *q);
/* Prints the error, and returns the exit status for it. */
int cli_record_fail(const struct ssb_error *err);

/* Verifies with the key of --key, or else the owner's own. Returns the exit status of a failure, or
 * 0. */
int cli_record_verify(const struct request *r, const struct record_request *q,
                      struct verify_result *ret);

/* Prints a message if the record was changed; in a file from elsewhere, as far as that shows
 * without a key. Returns the exit status. */
int cli_record_doubt(const struct request *r, const struct record_request *q);

/* "2h", "7d" (before now), a date, or RFC 3339, as the records write it. */
#define WHEN_SIZE 40
int cli_record_when(const char *text, char ret[WHEN_SIZE], struct ssb_error *err);
/* "30d" (from now), a date, or RFC 3339, to seconds since 1970. Fails if that is in the past. */
int cli_record_until(const char *text, int64_t *ret, struct ssb_error *err);
/* "30d" as seconds. */
int cli_record_seconds(const char *text, int64_t *ret, struct ssb_error *err);

/* After a run with violations: prints on standard error what was tried, how often, and what would
 * allow it. False: there is no record to read. */
bool cli_record_summary(const char *trace_path, const char *run_id);

#endif
