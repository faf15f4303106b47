/* cli_record.c - see cli_record.h. */
#include "cli/cli_record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "trace/key.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/own.h"
#include "base/stamp.h"
#include "cli/say.h"
#include "os/file.h"

int cli_record_open(const struct request *r, const char *fallback, struct record_request *ret)
{
	struct record_request q = RECORD_REQUEST_NONE;
	struct ssb_error err = { 0 };
	const char *word = r->operands.n > 0 ? r->operands.v[0] : fallback;

	if (word == NULL || r->operands.n > 1) {
		return say_fail(
		        EXIT_USAGE,
		        "%s needs one %s: an id from 'skillsandbox audit list', 'last', or a "
		        "file",
		        r->command->name, r->command->operands);
	}
	if (owner_load(&q.owner, &err) != 0 ||
	    run_file_open(&q.file, q.owner.state_dir, word, &err) != 0) {
		cli_record_done(&q);
		return exit_status_told(&err);
	}
	*ret = q;
	return EXIT_FINE;
}

void cli_record_done(struct record_request *q)
{
	owner_done(&q->owner);
	run_file_done(&q->file);
}

const char *cli_record_name(const struct record_request *q)
{
	return q->file.id[0] != '\0' ? q->file.id : q->file.path;
}

/* The file contains the key in hexadecimal, and a newline. */
static int read_key_file(const char *path, uint8_t ret[VERIFY_KEY_BYTES], struct ssb_error *err)
{
	auto_buf text = BUF(4096);
	auto_fd fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0 || file_read_all(fd, &text) != 0) {
		return ssb_fail(err, errno == ENOENT ? SSB_E_NOT_FOUND : SSB_E_SYS, errno, "",
		                "cannot read the key '%s'", path);
	}
	size_t len = text.len;
	while (len > 0 && (text.data[len - 1] == '\n' || text.data[len - 1] == '\r')) {
		len--;
	}
	if (len == 0 || hex_decode(text.data, len, ret, VERIFY_KEY_BYTES) != 0) {
		return ssb_fail(err, SSB_E_USAGE, 0, "",
		                "'%s' does not contain a public key (64 hexadecimal digits)", path);
	}
	return 0;
}

/* Finds the key of --key, or else the owner's own key. *ret_known is false if there is none. */
static int find_key(const struct request *r, const struct owner *owner,
                    uint8_t ret[VERIFY_KEY_BYTES], bool *ret_known, struct ssb_error *err)
{
	struct ssb_error why = { 0 };
	const char *word = request_value(r, FLAG_KEY);

	*ret_known = true;
	if (word != NULL) {
		return hex_decode(word, strlen(word), ret, VERIFY_KEY_BYTES) == 0
		               ? 0
		               : read_key_file(word, ret, err);
	}
	if (trace_key_public(owner, ret, &why) != 0) {
		*ret_known = false;
		if (why.code != SSB_E_NOT_FOUND) {
			*err = why;
			return -1;
		}
	}
	return 0;
}

int cli_record_verify(const struct request *r, const struct record_request *q,
                      struct verify_result *ret)
{
	struct ssb_error err = { 0 };
	uint8_t key[VERIFY_KEY_BYTES];
	bool known = false;

	if (find_key(r, &q->owner, key, &known, &err) != 0) {
		return exit_status_told(&err);
	}
	struct verify_ask ask = { .key = known ? key : NULL, .run_id = q->file.id };
	return verify_record(q->file.fd, &ask, ret, &err) == 0 ? EXIT_FINE : exit_status_told(&err);
}

/* Checks the record. A record from elsewhere may be signed with another owner's key. That is not
 * damage: only `audit verify` checks whose key it is. *ret_foreign is true for such a record. */
static int check_record(const struct request *r, const struct record_request *q,
                        struct verify_result *v, bool *ret_foreign)
{
	struct ssb_error err = { 0 };
	bool elsewhere = q->file.id[0] == '\0';

	*ret_foreign = false;
	if (!elsewhere) {
		return cli_record_verify(r, q, v);
	}
	if (verify_record(q->file.fd, &(struct verify_ask){ .run_id = "" }, v, &err) != 0) {
		return exit_status_told(&err);
	}
	*ret_foreign = v->state == VERIFY_BAD && v->signed_end;
	return EXIT_FINE;
}

int cli_record_doubt(const struct request *r, const struct record_request *q)
{
	struct verify_result v = { 0 };
	bool foreign = false;
	int status = check_record(r, q, &v, &foreign);

	if (status == EXIT_FINE && v.state == VERIFY_BAD && !foreign) {
		say_errorf("the file was changed: record %" PRIu64
		           " in it is bad (%s); see 'audit verify'",
		           v.bad_at, v.why);
		status = EXIT_FINDINGS;
	}
	if (status == EXIT_FINE && v.state == VERIFY_INCOMPLETE && v.records == 0) {
		say_errorf("the file has no complete record; see 'audit verify'");
		status = EXIT_FINDINGS;
	}
	return status;
}

int cli_record_state(const struct request *r, const struct record_request *q, struct buf *out,
                     bool *ret_sound)
{
	struct verify_result v = { 0 };
	bool foreign = false;
	int status = check_record(r, q, &v, &foreign);

	*ret_sound = status == EXIT_FINE && (v.state != VERIFY_BAD || foreign);
	if (foreign) {
		buf_adds(out, "complete and unchanged, signed with a key that is not checked here");
	} else if (v.state == VERIFY_COMPLETE) {
		buf_addf(out, "complete and unchanged: %" PRIu64 " records, signed with your key",
		         v.records);
	} else {
		buf_addf(out, "%s: %s", verify_state_name(v.state), v.why);
	}
	return status;
}

int cli_record_seconds(const char *text, int64_t *ret, struct ssb_error *err)
{
	if (stamp_span_seconds(text, ret)) {
		return 0;
	}
	return ssb_fail(err, SSB_E_USAGE, 0, "",
	                "'%s' is not a time span; write 90s, 15m, 2h, 7d or 4w", text);
}

static void format_time(int64_t micros, char ret[WHEN_SIZE])
{
	time_t t = (time_t)(micros / 1000000);
	struct tm tm = { 0 };
	char text[WHEN_SIZE];

	(void)gmtime_r(&t, &tm);
	(void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(ret, WHEN_SIZE, "%.20s.%06dZ", text, (int)(micros % 1000000));
}

/* Returns the number that two digits form; -1: they are not digits. */
static int parse_two_digits(const char *p)
{
	return p[0] >= '0' && p[0] <= '9' && p[1] >= '0' && p[1] <= '9'
	               ? (p[0] - '0') * 10 + (p[1] - '0')
	               : -1;
}

/* Converts "Z" or "+01:00" to seconds east of Greenwich. */
static bool parse_zone(const char *p, int64_t *ret)
{
	if (strcmp(p, "Z") == 0 || strcmp(p, "z") == 0) {
		*ret = 0;
		return true;
	}
	if ((*p != '+' && *p != '-') || strlen(p) != 6 || p[3] != ':') {
		return false;
	}
	int hours = parse_two_digits(p + 1);
	int minutes = parse_two_digits(p + 4);
	if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59) {
		return false;
	}
	*ret = (int64_t)(hours * 3600 + minutes * 60) * (*p == '-' ? -1 : 1);
	return true;
}

/* Converts ".25" to microseconds. Digits after the sixth are dropped. */
static int64_t parse_fraction(const char **p)
{
	int64_t micros = 0;

	if (**p != '.') {
		return 0;
	}
	(*p)++;
	for (int64_t unit = 100000; **p >= '0' && **p <= '9'; (*p)++) {
		micros += (**p - '0') * unit;
		unit /= 10;
	}
	return micros;
}

/* timegm() would silently change the 30th of February to a day of March. */
static bool is_date(const struct tm *tm)
{
	struct tm date = *tm;

	return timegm(&date) != -1 && date.tm_mday == tm->tm_mday;
}

static bool parse_time(const char *text, int64_t *ret_micros)
{
	struct tm tm = { 0 };
	int64_t zone = 0;
	int64_t fraction = 0;
	const char *p = strptime(text, "%Y-%m-%d", &tm);

	if (p == NULL || tm.tm_year < 70 || tm.tm_year > 8099 || !is_date(&tm)) {
		return false;
	}
	if (*p != '\0') {
		p = *p == 'T' || *p == 't' || *p == ' ' ? strptime(p + 1, "%H:%M:%S", &tm) : NULL;
		if (p == NULL) {
			return false;
		}
		fraction = parse_fraction(&p);
		if (!parse_zone(p, &zone)) {
			return false;
		}
	}
	*ret_micros = ((int64_t)timegm(&tm) - zone) * 1000000 + fraction;
	return *ret_micros >= 0;
}

int cli_record_when(const char *text, char ret[WHEN_SIZE], struct ssb_error *err)
{
	struct ssb_error none = { 0 };
	int64_t v = 0;

	if (cli_record_seconds(text, &v, &none) == 0) {
		int64_t now = (int64_t)time(NULL);
		format_time((now > v ? now - v : 0) * 1000000, ret);
		return 0;
	}
	if (!parse_time(text, &v)) {
		return ssb_fail(err, SSB_E_USAGE, 0, "",
		                "'%s' is not a time; write 2h or 7d (ago), 2026-11-15, or "
		                "2026-11-15T13:20:00Z",
		                text);
	}
	format_time(v, ret);
	return 0;
}

int cli_record_until(const char *text, int64_t *ret, struct ssb_error *err)
{
	int64_t now = (int64_t)time(NULL);
	int64_t v = 0;

	if (stamp_span_seconds(text, &v)) {
		v += now;
	} else if (parse_time(text, &v)) {
		v /= 1000000;
	} else {
		return ssb_fail(err, SSB_E_USAGE, 0, "",
		                "'%s' is not a time; write 2h or 30d (from now), 2026-11-15, or "
		                "2026-11-15T13:20:00Z",
		                text);
	}
	if (v <= now) {
		return ssb_fail(err, SSB_E_USAGE, 0, "", "'%s' is in the past", text);
	}
	*ret = v;
	return 0;
}
