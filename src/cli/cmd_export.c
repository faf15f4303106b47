/* cmd_export.c - writes one file with a record, its key and the version of the program that wrote
 * the record. `audit verify` can verify that file on any machine. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "trace/reader.h"
#include "base/error.h"
#include "base/own.h"
#include "cli/cli_record.h"
#include "cli/say.h"
#include "os/file.h"

/* Writes only the lines that were verified. If the skill is still running, it may have added
 * further lines since. */
static int write_bundle(int to, const struct record_request *q, const struct verify_result *v,
                        struct ssb_error *err)
{
	AUTO(reader_done) struct reader in;
	auto_buf header = BUF(SAY_MAX);
	const char *line = NULL;
	size_t len = 0;
	uint64_t done = 0;

	verify_bundle_header(&header, v);
	reader_init(&in, q->file.fd, 0);
	if (header.failed || file_write_all(to, header.data, header.len) != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "", "cannot write the export");
	}
	while (done < v->records && reader_next(&in, &line, &len) == READER_LINE) {
		if (done == 0 && reader_is_header(line, len)) {
			continue;
		}
		if (file_write_all(to, line, len) != 0) {
			return ssb_fail(err, SSB_E_SYS, errno, "", "cannot write the export");
		}
		done++;
	}
	if (done < v->records) {
		return ssb_fail(err, SSB_E_SYS, 0, "", "the record changed while it was read");
	}
	return 0;
}

static int export_to(const char *path, const struct record_request *q,
                     const struct verify_result *v, struct ssb_error *err)
{
	bool out = strcmp(path, "-") == 0;
	auto_fd fd = out ? dup(STDOUT_FILENO)
	                 : open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "", "cannot create '%s'%s", path,
		                errno == EEXIST ? " (an export never replaces a file)" : "");
	}
	if (write_bundle(fd, q, v, err) != 0 || (!out && fsync(fd) != 0)) {
		ssb_fail(err, SSB_E_SYS, errno, "", "cannot write '%s'", path);
		if (!out) {
			(void)unlink(path);
		}
		return -1;
	}
	return 0;
}

int cmd_export(struct request *r)
{
	AUTO(cli_record_done) struct record_request q = RECORD_REQUEST_NONE;
	struct verify_result v = { 0 };
	struct ssb_error err = { 0 };
	const char *path = request_value(r, FLAG_OUTPUT);

	if (path == NULL || path[0] == '\0') {
		return say_fail(EXIT_USAGE, "audit export needs -o FILE");
	}
	int status = cli_record_open(r, NULL, &q);
	if (status == EXIT_FINE) {
		status = cli_record_verify(r, &q, &v);
	}
	if (status != EXIT_FINE) {
		return status;
	}
	if (v.state == VERIFY_BAD) {
		say_errorf("record %" PRIu64 " in the file is bad (%s); nothing was exported",
		           v.bad_at, v.why);
		return EXIT_FINDINGS;
	}
	if (export_to(path, &q, &v, &err) != 0) {
		return exit_status_told(&err);
	}
	if (v.state == VERIFY_INCOMPLETE) {
		say_warningf("the record is incomplete: %s", v.why);
	}
	return EXIT_FINE;
}
