/* test_verify.c - reading records: lines and their limit, files that grow, and the results of
 * verify. Every kind of tampering is in tests/e2e/test_audit.py, with records that other code
 * wrote. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unit.h"
#include "trace/reader.h"
#include "trace/trace_file.h"
#include "trace/verify.h"
#include "base/buf.h"
#include "base/ed25519.h"
#include "base/hex.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/sha256.h"
#include "os/file.h"

#define ID    "00000000-0000-4000-8000-000000000001"
#define STAMP "2026-11-15T13:20:00.000000Z"

static const uint8_t SEED[ED25519_SEED] = { 7 };

struct maker {
	struct buf text;
	uint8_t head[SHA256_BYTES];
	unsigned seq;
};

static void make_line(struct maker *m, const char *kind, const char *members)
{
	auto_buf line;
	struct sha256 s;
	char hex[2 * SHA256_BYTES + 1];

	buf_init(&line, 4 << 20);
	buf_addf(&line, "{\"seq\":%u,\"time\":\"" STAMP "\",\"mono\":0,\"kind\":\"%s\"%s", m->seq++,
	         kind, members);
	sha256_init(&s);
	sha256_update(&s, m->head, sizeof(m->head));
	sha256_update(&s, line.data, line.len);
	sha256_final(&s, m->head);
	hex_encode(m->head, sizeof(m->head), hex);
	buf_addf(&m->text, "%s,\"hash\":\"%s\"}\n", line.data, hex);
}

static void make_signature(struct maker *m)
{
	struct ed25519_key key;
	uint8_t signature[ED25519_SIGNATURE];
	char hex[2 * ED25519_SIGNATURE + 1];
	char public[2 * ED25519_PUBLIC + 1];
	char members[512];

	ed25519_key_init(&key, SEED);
	ed25519_sign(&key, m->head, sizeof(m->head), signature);
	hex_encode(signature, sizeof(signature), hex);
	hex_encode(key.public, sizeof(key.public), public);
	snprintf(members, sizeof(members), ",\"key\":\"%s\",\"signature\":\"%s\"", public, hex);
	make_line(m, "signature", members);
}

/* Makes a record with one event whose message has `len` bytes. */
static void make(struct maker *m, size_t len)
{
	auto_buf members;

	buf_init(&members, 4 << 20);
	*m = (struct maker){ 0 };
	buf_init(&m->text, 8 << 20);
	buf_adds(&members, ",\"message\":\"");
	for (size_t i = 0; i < len; i++) {
		buf_addc(&members, 'x');
	}
	buf_addc(&members, '"');
	make_line(m, "run", ",\"run_id\":\"" ID "\",\"version\":\"0.1.0\"");
	make_line(m, "stdout", members.data);
	make_line(m, "end", ",\"exit_code\":0");
	make_signature(m);
}

static struct verify_result verify(const struct maker *m, size_t len, const char *run_id)
{
	struct ed25519_key key;
	struct verify_result r = { 0 };
	auto_fd fd = memfd_create("record", MFD_CLOEXEC);

	ed25519_key_init(&key, SEED);
	struct verify_ask ask = { key.public, run_id };
	assert_int_equal(file_write_all(fd, m->text.data, len), 0);
	assert_int_equal(verify_record(fd, &ask, &r, NULL), 0);
	return r;
}

static void test_answers(void **state)
{
	struct maker m;

	make(&m, 10);
	struct verify_result r = verify(&m, m.text.len, ID);
	assert_int_equal(r.state, VERIFY_COMPLETE);
	assert_int_equal(r.records, 4);
	assert_int_equal(r.bytes, m.text.len);
	assert_string_equal(r.run_id, ID);
	assert_string_equal(r.version, "0.1.0");
	assert_true(r.signed_end);
	r = verify(&m, m.text.len, "00000000-0000-4000-8000-000000000002");
	assert_int_equal(r.state, VERIFY_BAD);
	buf_done(&m.text);
}

/* Wherever a record is cut, the result is incomplete, never complete and never bad. */
static void test_every_truncation(void **state)
{
	struct maker m;

	make(&m, 10);
	for (size_t len = 0; len < m.text.len; len++) {
		struct verify_result r = verify(&m, len, "");
		assert_int_equal(r.state, VERIFY_INCOMPLETE);
		assert_int_equal(r.bad_at, r.records);
	}
	buf_done(&m.text);
}

/* Whichever byte has one changed bit, the result is never complete. */
static void test_every_bit(void **state)
{
	struct maker m;

	make(&m, 10);
	for (size_t i = 0; i < m.text.len; i++) {
		m.text.data[i] ^= (char)(1 << i % 8);
		assert_int_not_equal(verify(&m, m.text.len, "").state, VERIFY_COMPLETE);
		m.text.data[i] ^= (char)(1 << i % 8);
	}
	assert_int_equal(verify(&m, m.text.len, "").state, VERIFY_COMPLETE);
	buf_done(&m.text);
}

static void test_line_cap(void **state)
{
	struct maker m;

	make(&m, 0);
	size_t rest = strlen(strchr(m.text.data, '\n') + 1);
	size_t third = strlen(strchr(strchr(m.text.data, '\n') + 1, '\n') + 1);
	size_t overhead = rest - third; /* length of the event's line without its message */
	buf_done(&m.text);
	make(&m, MAX_RECORD_LINE - overhead);
	assert_int_equal(verify(&m, m.text.len, "").state, VERIFY_COMPLETE);
	buf_done(&m.text);
	make(&m, MAX_RECORD_LINE - overhead + 1);
	struct verify_result r = verify(&m, m.text.len, "");
	assert_int_equal(r.state, VERIFY_BAD);
	assert_int_equal(r.bad_at, 1);
	buf_done(&m.text);
}

static void test_reader_of_a_growing_file(void **state)
{
	AUTO(reader_done) struct reader in;
	const char *line = NULL;
	size_t len = 0;
	auto_fd fd = memfd_create("record", MFD_CLOEXEC);

	reader_init(&in, fd, 0);
	assert_int_equal(reader_next(&in, &line, &len), READER_END);
	assert_int_equal(file_write_all(fd, "one\ntw", 6), 0);
	assert_int_equal(reader_next(&in, &line, &len), READER_LINE);
	assert_int_equal(len, 4);
	assert_int_equal(reader_next(&in, &line, &len), READER_CUT);
	assert_int_equal(reader_next(&in, &line, &len), READER_CUT);
	assert_int_equal(file_write_all(fd, "o\n\n", 3), 0);
	assert_int_equal(reader_next(&in, &line, &len), READER_LINE);
	assert_memory_equal(line, "two\n", 4);
	assert_int_equal(reader_next(&in, &line, &len), READER_LINE);
	assert_int_equal(len, 1);
	assert_int_equal(reader_next(&in, &line, &len), READER_END);
}

static void test_name_of_the_record(void **state)
{
	assert_string_equal(trace_file_more("/a/trace.json"), "l");
	assert_string_equal(trace_file_more("x.json"), "l");
	assert_string_equal(trace_file_more("/a/x.txt"), ".jsonl");
	assert_string_equal(trace_file_more("/a.json/x"), ".jsonl");
	assert_string_equal(trace_file_more("/a/.json"), ".jsonl");
	assert_string_equal(trace_file_more(".json"), ".jsonl");
}

static void test_ids(void **state)
{
	struct run_entry e;

	assert_true(runs_id_valid(ID, 36));
	assert_false(runs_id_valid("0000000g-0000-4000-8000-000000000001", 36));
	assert_false(runs_id_valid("00000000-0000-4000-8000-00000000000", 35));
	assert_true(run_entry_from_name(&e, ID) && e.has_dir && !e.has_flat);
	assert_true(run_entry_from_name(&e, ID ".trace.jsonl") && e.has_flat && !e.has_dir);
	assert_false(run_entry_from_name(&e, ID ".trace.json"));
	assert_false(run_entry_from_name(&e, ID "x"));
	assert_false(run_entry_from_name(&e, ".."));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_every_truncation),
		cmocka_unit_test(test_every_bit),
		cmocka_unit_test(test_line_cap),
		cmocka_unit_test(test_reader_of_a_growing_file),
		cmocka_unit_test(test_ids),
		cmocka_unit_test(test_name_of_the_record),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
