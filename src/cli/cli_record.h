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

/* Opens the record that the operand names. If there is no operand, `fallback` names the record; if
 * `fallback` is NULL as well, that is an error. Returns 0, or prints the error and returns the exit
 * status. */
int cli_record_open(const struct request *r, const char *fallback, struct record_request *ret);
void cli_record_done(struct record_request *q);
/* Returns the name of the record for messages: its short id, or its path. */
const char *cli_record_name(const struct record_request *q);

/* Verifies the record with the key of --key, or else with the owner's own key. Returns 0, or the
 * exit status if the record cannot be verified. */
int cli_record_verify(const struct request *r, const struct record_request *q,
                      struct verify_result *ret);

/* Prints an error if the record was changed. For a file from elsewhere, the owner's key is not
 * used, so only changes that can be found without this key are reported. Returns the exit
 * status. */
int cli_record_doubt(const struct request *r, const struct record_request *q);
/* Checks the record and appends the result in words. *ret_sound is false if the record is bad.
 * Returns the exit status. */
int cli_record_state(const struct request *r, const struct record_request *q, struct buf *out,
                     bool *ret_sound);

/* Reads a time: "2h" or "7d" (before now), a date, or RFC 3339. Writes it in the form that
 * records use. */
#define WHEN_SIZE 40
int cli_record_when(const char *text, char ret[WHEN_SIZE], struct ssb_error *err);
/* Converts "30d" (from now), a date, or RFC 3339 to seconds since 1970. Fails if the time is in the
 * past. */
int cli_record_until(const char *text, int64_t *ret, struct ssb_error *err);
/* Converts a time span such as "30d" to seconds. */
int cli_record_seconds(const char *text, int64_t *ret, struct ssb_error *err);

/* After a run: prints on standard error which limits were reached. With `denials`, also prints what
 * was denied, how often, and what would allow it. Returns false if there is no record to read or
 * nothing to print. */
bool cli_record_summary(const struct owner *o, const char *trace_path, const char *run_id,
                        bool denials);

#endif
