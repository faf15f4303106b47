/* cli_record.h - what the commands that read records share. */
#ifndef CLI_CLI_RECORD_H
#define CLI_CLI_RECORD_H

#include "trace/runs.h"
#include "trace/verify.h"
#include "cli/cli.h"
#include "policy/owner.h"

/* The owner and the record that the first operand names (`fallback` where
 * there is none; NULL: it is needed). On failure the error is said, and the
 * exit status is returned; 0 is success. */
struct record_request {
	struct owner owner;
	struct run_file file;
};

#define RECORD_REQUEST_NONE                                                                        \
	{                                                                                          \
		.file = RUN_FILE_NONE                                                              \
	}

int record_request(const struct request *r, const char *fallback, struct record_request *ret);
void record_request_done(struct record_request *q);
/* The name by which to speak of it: the short id, or the path. */
const char *cli_record_name(const struct record_request *q);
/* The error as said, and the exit status for it. */
int cli_record_fail(const struct ssb_error *err);

/* Verifies with --key, or else with the owner's own; the exit status of a failure, or 0. */
int cli_record_verify(const struct request *r, const struct record_request *q,
                      struct verify_result *ret);

/* Says it if the record is not what was written; of a file from elsewhere, as far as
 * that can be known without a key. The exit status. */
int cli_record_doubt(const struct request *r, const struct record_request *q);

/* "2h", "7d" (before now), a date, or RFC 3339, as the records write it. */
#define WHEN_SIZE 40
int cli_record_when(const char *text, char ret[WHEN_SIZE], struct ssb_error *err);
/* "30d" (from now), a date, or RFC 3339: a time to come, in seconds since 1970. */
int cli_record_until(const char *text, int64_t *ret, struct ssb_error *err);
/* "30d" as seconds. */
int cli_record_seconds(const char *text, int64_t *ret, struct ssb_error *err);

/* After a run with violations, on standard error: what was tried, how often,
 * what would allow it. False: there is no record to tell from. */
bool cli_record_summary(const char *trace_path, const char *run_id);

#endif
