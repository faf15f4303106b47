/* test_limit_text.c - the words about limits, from the members of a line. */
#include <string.h>

#include "unit.h"

#include "base/own.h"
#include "report/limit_text.h"
#include "report/remedy.h"

#define LINE(kind, data)                                                                           \
	"{\"seq\":1,\"time\":\"2026-11-15T13:20:00.013000Z\",\"mono\":1,\"kind\":\"" kind          \
	"\",\"message\":\"m\",\"data\":{" data "},\"hash\":\"00\"}"

static const struct row {
	const char *data;
	const char *what;
	const char *value;
	const char *remedy; /* with a manifest */
	const char *bare;   /* without one */
} ROWS[] = {
	{ "\"limit\":\"max_disk_mb\",\"value\":64", "the private disk (64 MiB) was full", "64 MiB",
	  "--max-disk 128M, or resources.max_disk_mb: 128 in the manifest", "--max-disk 128M" },
	{ "\"limit\":\"memory_mb\",\"value\":1024,\"seen\":1100",
	  "the memory limit (1 GiB) ended the skill, which used 1100 MiB", "1 GiB",
	  "--memory 2G, or resources.memory_mb: 2048 in the manifest", "--memory 2G" },
	{ "\"limit\":\"memory_mb\",\"value\":100,\"seen\":500",
	  "the memory limit (100 MiB) ended the skill, which used 500 MiB", "100 MiB",
	  "--memory 800M, or resources.memory_mb: 800 in the manifest", "--memory 800M" },
	{ "\"limit\":\"max_runtime_seconds\",\"value\":60", "the time limit (60 s) ended the skill",
	  "60 s", "--timeout 120s, or resources.max_runtime_seconds: 120 in the manifest",
	  "--timeout 120s" },
	{ "\"limit\":\"max_output_bytes\",\"value\":1048576,\"seen\":1500000,\"stream\":\"stderr\"",
	  "stderr was cut at the output limit (1 MiB); the skill wrote 1.4 MiB", "1 MiB",
	  "--max-output 2M, or resources.max_output_bytes: 2097152 in the manifest",
	  "--max-output 2M" },
	{ "\"limit\":\"max_processes\",\"value\":64,\"refused\":1",
	  "the process limit (64 processes and threads) was reached, 1 start was refused",
	  "64 processes and threads",
	  "--max-processes 128, or resources.max_processes: 128 in the manifest",
	  "--max-processes 128" },
	{ "\"limit\":\"max_processes\",\"value\":40000,\"refused\":7",
	  "the process limit (40000 processes and threads) was reached, 7 starts were refused",
	  "40000 processes and threads",
	  "--max-processes 65536, or resources.max_processes: 65536 in the manifest",
	  "--max-processes 65536" },
	/* No larger value exists. */
	{ "\"limit\":\"max_processes\",\"value\":65536", /* the most */
	  "the process limit (65536 processes and threads) was reached",
	  "65536 processes and threads", "", "" },
	{ "\"limit\":\"max_disk_mb\",\"value\":9223372036854775807,\"seen\":9223372036854775807",
	  "the private disk (9223372036854775807 MiB) was full", "9223372036854775807 MiB", "",
	  "" },
	{ "\"limit\":\"max_open_files\",\"value\":1024",
	  "a process reached the limit of open files (1024 files)", "1024 files",
	  "--max-files 2048, or resources.max_open_files: 2048 in the manifest",
	  "--max-files 2048" },
	{ "\"limit\":\"max_connections\",\"value\":64",
	  "the connection limit (64 connections) was reached", "64 connections",
	  "permissions.network.max_connections: 128 in the manifest",
	  "permissions.network.max_connections: 128 in a manifest ('skillsandbox init DIR' writes "
	  "one)" },
	{ "\"limit\":\"max_connections_per_second\",\"value\":100",
	  "connections waited at their limit (100 new connections a second)",
	  "100 new connections a second",
	  "permissions.network.max_connections_per_second: 200 in the manifest",
	  "permissions.network.max_connections_per_second: 200 in a manifest ('skillsandbox init "
	  "DIR' writes one)" },
	{ "\"limit\":\"max_bytes_out\",\"value\":1073741824",
	  "the limit of bytes (1 GiB to the network) was reached", "1 GiB to the network",
	  "permissions.network.max_bytes_out: 2147483648 in the manifest",
	  "permissions.network.max_bytes_out: 2147483648 in a manifest ('skillsandbox init DIR' "
	  "writes one)" },
	/* A forged line: these are not limits. */
	{ "\"limit\":\"max_disk_mb\"", NULL, NULL, NULL, NULL },
	{ "\"limit\":\"max_disk_mb\",\"value\":-1", NULL, NULL, NULL, NULL },
	{ "\"limit\":\"max_disk_mb\",\"value\":\"64\"", NULL, NULL, NULL, NULL },
	{ "\"limit\":\"rm -rf\",\"value\":64", NULL, NULL, NULL, NULL },
	{ "\"limit\":64,\"value\":64", NULL, NULL, NULL, NULL },
};

static void expect(struct buf *out, const char *want)
{
	buf_adds(out, "");
	assert_string_equal(out->data != NULL ? out->data : "", want);
	buf_reset(out);
}

static void test_words(void **state)
{
	auto_buf out = BUF(4096);
	const char *why;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
		AUTO(line_done) struct line l = { 0 };
		char text[512];
		snprintf(text, sizeof(text), LINE("resource_limit_hit", "%s"), ROWS[i].data);
		assert_int_equal(line_parse(&l, text, strlen(text), &why), 0);
		assert_int_equal(limit_text_known(&l), ROWS[i].what != NULL);
		if (ROWS[i].what == NULL) {
			continue;
		}
		limit_text_what(&out, &l);
		expect(&out, ROWS[i].what);
		limit_text_value(&out, &l);
		expect(&out, ROWS[i].value);
		limit_text_remedy(&out, &l, false);
		expect(&out, ROWS[i].remedy);
		(void)remedy_text(&out, &l, true);
		expect(&out, ROWS[i].bare);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_words) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
