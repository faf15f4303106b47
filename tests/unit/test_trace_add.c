/* test_trace_add.c - adding events to the record and to the document: members, repeats, limits,
 * failures. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdalign.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"
#include "trace/event_text.h"
#include "observe/observe_queue.h"
#include "trace/runs.h"
#include "trace/trace.h"
#include "trace/trace_limits.h"
#include "base/limits.h"
#include "base/own.h"
#include "os/clock.h"

static char tmp[64];
static char path[PATH_MAX];       /* path of trace.json of the last run */
static char record[PATH_MAX + 1]; /* path of the record of that run */

static int sh(const char *command)
{
	pid_t pid = fork();

	if (pid == 0) {
		execl("/bin/sh", "sh", "-c", command, "sh", tmp, (char *)NULL);
		_exit(127);
	}
	int status = -1;
	return waitpid(pid, &status, 0) == pid ? status : -1;
}

static int setup(void **state)
{
	snprintf(tmp, sizeof(tmp), "/dev/shm/test-trace-XXXXXX");
	return mkdtemp(tmp) != NULL ? 0 : -1;
}

static int teardown(void **state)
{
	return sh("rm -rf \"$1\"");
}

static struct owner owner;
static struct ssb_plan plan = {
	.name = "weather", .version = "1.0.0", .workdir = "/skill", .home = "/home/u"
};

static struct trace *begin(void)
{
	struct ssb_error err = { 0 };
	struct trace *t = NULL;

	owner = (struct owner){ .home = "/home/u", .state_dir = tmp };
	if (trace_open(&plan, NULL, &owner, &t, &err) != 0) {
		fail_msg("%s: %s", err.where, err.text);
	}
	snprintf(path, sizeof(path), "%s", trace_path(t));
	snprintf(record, sizeof(record), "%sl", path);
	return t;
}

static void finish(struct trace *t)
{
	struct ssb_result result = { .exit_status = 3, .duration_us = 5, .stdout_bytes = 11 };
	struct ssb_error err = { 0 };

	if (trace_close(t, NULL, &result, &err) != 0) {
		fail_msg("%s: %s", err.where, err.text);
	}
	trace_free(t);
}

/* Checks the hash chain of the record. Then fails the test unless the Python expression `condition`
 * is true. In it, `d` is the document, and `r` is the list of the record's lines. */
static void check(const char *condition)
{
	static const char program[] =
	        "import hashlib, json, sys\n"
	        "d = json.load(open(sys.argv[1], encoding='utf-8')) if sys.argv[1] else None\n"
	        "last, r = bytes(32), []\n"
	        "for line in open(sys.argv[2], 'rb'):\n"
	        "    last = hashlib.sha256(last + line[:-76]).digest()\n"
	        "    assert line[-67:-3] == last.hex().encode() and len(line) <= 65536\n"
	        "    r.append(json.loads(line))\n"
	        "    assert r[-1]['seq'] == len(r) - 1\n"
	        "end = r[-2]\n"
	        "calm = lambda xs: sum('/calm' in str(x) for x in xs)\n"
	        "sys.exit(0 if eval(sys.argv[3]) else 1)\n";
	struct stat st;
	pid_t pid = fork();

	if (pid == 0) {
		execl("/usr/bin/python3", "python3", "-I", "-c", program,
		      stat(path, &st) == 0 ? path : "", record, condition, (char *)NULL);
		_exit(127);
	}
	int status = -1;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status != 0) {
		fail_msg("not so: %s", condition);
	}
}

static struct event attempt(const char *name)
{
	return (struct event){ .kind = EV_FILE_BLOCKED,
		               .status = STATUS_DENIED,
		               .violation = true,
		               .op = OP_OPEN,
		               .pid = 7,
		               .ppid = 2,
		               .program = { "/usr/bin/cat", 12 },
		               .path = { name, strlen(name) },
		               .mode = MODE_READ,
		               .reason = REASON_CREDENTIAL_STORE,
		               .error = EACCES };
}

static void more_members(struct json *j, void *arg)
{
	json_kstr(j, "extra", arg);
}

static void test_members(void **state)
{
	static const struct bytes args[] = { { "git", 3 }, { "a\0b\xff", 4 } };
	struct trace *t = begin();
	struct event e = attempt("/home/u/.ssh/id_rsa");
	e.raw = (struct bytes){ "../.ssh/id_rsa", 14 };
	e.path2 = (struct bytes){ "/x\xff", 3 };
	e.rule = RULE_ENTRY;
	e.entry = "skillsandbox.yaml:12:7";
	e.remedy = "--read ~/.ssh";
	trace_add(t, &e);
	trace_add(t, &(struct event){ .kind = EV_NETWORK_EGRESS_BLOCKED,
	                              .status = STATUS_DENIED,
	                              .op = OP_CONNECT,
	                              .address = "10.0.0.1",
	                              .port = 443,
	                              .protocol = PROTOCOL_TCP,
	                              .error = 4095,
	                              .more = more_members,
	                              .more_arg = "x" });
	trace_add(t, &(struct event){ .kind = EV_PROCESS_SPAWNED,
	                              .status = STATUS_FACT,
	                              .op = OP_EXEC,
	                              .path = { "/usr/bin/git", 12 },
	                              .args = args,
	                              .n_args = 2 });
	trace_add(t, &(struct event){ .kind = EV_FILE_WRITE,
	                              .op = OP_SYMLINK,
	                              .path = { "/l", 2 },
	                              .leads_to = { "\xff", 1 } });
	trace_add(t, &(struct event){ .kind = EV_FILE_WRITE,
	                              .op = OP_SYMLINK,
	                              .path = { "/l", 2 },
	                              .leads_to = { "", 0 } });
	trace_add(t, &(struct event){ .kind = EV_FILE_WRITE,
	                              .op = OP_SETXATTR,
	                              .path = { "/f", 2 },
	                              .attribute = { "user.a\n", 7 } });
	finish(t);
	check("r[1]['data'] == d['events'][0]['data'] == {'op': 'open', 'status': 'denied', "
	      "'pid': 7, 'ppid': 2, 'program': '/usr/bin/cat', 'path': '/home/u/.ssh/id_rsa', "
	      "'path2': '/x\\udcff', 'raw': '../.ssh/id_rsa', 'mode': 'read', "
	      "'rule': 'skillsandbox.yaml:12:7', 'reason': 'credential_store', "
	      "'error': 'EACCES', 'remedy': '--read ~/.ssh'}");
	check("r[1]['violation'] is True and 'violation' not in r[2]");
	check("r[2]['data'] == {'op': 'connect', 'status': 'denied', 'address': '10.0.0.1', "
	      "'port': 443, 'protocol': 'tcp', 'error': 4095, 'extra': 'x'}");
	check("r[2]['message'] == 'connect 10.0.0.1:443: denied'");
	check("r[3]['data']['args'] == ['git', 'a\\0b\\udcff']");
	check("d['events'][2]['message'] == r[3]['message'] == 'exec /usr/bin/git'");
	check("[x['data'] for x in r[4:7]] == [{'op': 'symlink', 'path': '/l', 'leads_to': y} "
	      "for y in ('\\udcff', '')] + "
	      "[{'op': 'setxattr', 'path': '/f', 'attribute': 'user.a\\n'}]");
	check("r[4]['message'] == 'symlink /l -> \\udcff' and "
	      "r[6]['message'] == 'setxattr /f (user.a\\n)'");
	check("set(d['events'][0]) == {'timestamp', 'kind', 'message', 'data'}");
	check("d['policy_violations'] == [d['events'][0]]");
	check("[x['kind'] for x in r[-2:]] == ['end', 'signature']");
	check("end['counters'] == {'events': 6, 'violations': 1, 'dropped': 0, 'repeats': 0, "
	      "'unreadable': 0, 'stdout_bytes': 11, 'stderr_bytes': 0}");
	check("end['exit_code'] == 3 and end['end'] == 'exited' and end['duration_us'] == 5");
}

static void test_repeats_are_counted(void **state)
{
	struct trace *t = begin();

	for (int i = 0; i < 5; i++) {
		struct event a = attempt("/a");
		struct event b = attempt("/b");
		a.pid = 100 + i; /* repeats by another process count together with these */
		trace_add(t, &a);
		trace_add(t, &b);
		/* output is not an attempt: equal output is not counted, each has its line */
		trace_event(t, EV_STDOUT, "same", 4);
	}
	struct event c = attempt("/c");
	trace_add(t, &c);
	assert_int_equal(trace_violations(t), 11);
	finish(t);
	check("[x['data']['path'] for x in r if 'data' in x] == ['/a', '/b', '/c']");
	check("len([x for x in r if x['kind'] == 'stdout']) == 5");
	check("sorted((x['repeat_of'], x['count'], x['kind']) for x in r if 'repeat_of' in x) == "
	      "[(1, 4, 'file_blocked'), (2, 4, 'file_blocked')]");
	check("all(r[x['repeat_of']]['time'] == x['first'] <= x['last'] <= x['time'] "
	      "for x in r if 'repeat_of' in x)");
	check("end['counters']['repeats'] == 8 and end['counters']['violations'] == 11");
	check("end['summary']['total_enforcements'] == 11");
	check("len(d['policy_violations']) == 3 and d['counters']['violations_dropped'] == 0");
}

static void test_too_many_kinds_of_attempts(void **state)
{
	const int names = 3 * FOLD_ENTRIES;
	char name[32];
	struct trace *t = begin();

	for (int i = 0; i < names; i++) {
		snprintf(name, sizeof(name), "/%d", i);
		struct event e = attempt(name);
		trace_add(t, &e);
		trace_add(t, &e);
	}
	finish(t);
	check("sum(x['count'] for x in r if 'repeat_of' in x) == 12288 == "
	      "end['counters']['repeats'] and end['counters']['events'] == 12288");
	check("all('path' in r[x['repeat_of']]['data'] for x in r if 'repeat_of' in x)");
}

static void test_long_events_are_cut(void **state)
{
	static char text[MAX_PATH_BYTES];
	static struct bytes args[TRACE_MAX_ARGS + 1];
	struct trace *t = begin();

	memset(text, '\x01', sizeof(text)); /* each of these bytes takes six characters in JSON */
	struct bytes all = { text, sizeof(text) };
	struct event e = attempt("/a");
	e.path = e.path2 = e.raw = e.program = all;
	trace_add(t, &e);
	memset(text, 'p', sizeof(text));
	e.path2 = e.program = (struct bytes){ 0 };
	trace_add(t, &e); /* a path at the limit is not cut */
	for (size_t i = 0; i < ARRAY_LEN(args); i++) {
		args[i] = (struct bytes){ "abc", 3 };
	}
	trace_add(t, &(struct event){ .kind = EV_PROCESS_SPAWNED,
	                              .status = STATUS_FACT,
	                              .op = OP_EXEC,
	                              .args = args,
	                              .n_args = TRACE_MAX_ARGS });
	trace_add(t, &(struct event){ .kind = EV_PROCESS_SPAWNED,
	                              .status = STATUS_FACT,
	                              .op = OP_EXEC,
	                              .args = args,
	                              .n_args = TRACE_MAX_ARGS + 1 });
	args[0] = all;
	args[1] = all;
	args[2] = all;
	trace_add(t, &(struct event){ .kind = EV_PROCESS_SPAWNED,
	                              .status = STATUS_FACT,
	                              .op = OP_EXEC,
	                              .args = args,
	                              .n_args = 3 });
	finish(t);
	check("r[1]['data']['cut'] and r[1]['data']['path'] == '\\1' * 1021 + '\\u2026' and "
	      "r[1]['data']['path2'] == r[1]['data']['path'] and 'raw' not in r[1]['data']");
	check("r[1]['data']['path_bytes'] == 4096 and r[1]['data']['path_digest'] == "
	      "'sha256:' + hashlib.sha256(b'\\1' * 4096).hexdigest()");
	check("r[2]['data']['path'] == 'p' * 4096 == r[2]['data']['raw'] and "
	      "'cut' not in r[2]['data']");
	check("r[3]['data']['args'] == ['abc'] * 256 and 'args_cut' not in r[3]['data']");
	check("r[4]['data']['args'] == ['abc'] * 256 and r[4]['data']['args_cut']");
	check("sum(map(len, r[5]['data']['args'])) == 8192 and r[5]['data']['args_cut']");
	check("end['counters']['dropped'] == 0");
}

/* In a line, the path of a missing file takes at most 4 KiB, whatever bytes are in it. A path of
 * usual length is not cut. */
static void test_absent_names_are_short_lines(void **state)
{
	static char raw[MAX_PATH_BYTES], whole[MAX_PATH_BYTES];
	static const char fill[] = { '\1', '\xff', '"', 'a' };
	struct trace *t = begin();

	for (size_t i = 0; i < ARRAY_LEN(fill); i++) {
		memset(raw, fill[i], sizeof(raw));
		snprintf(whole, sizeof(whole), "/tmp/%.*s", 2500, raw);
		trace_add(t, &(struct event){ .kind = EV_FILE_READ,
		                              .status = STATUS_ABSENT,
		                              .op = OP_OPEN,
		                              .pid = 7,
		                              .program = { raw, 255 },
		                              .path = { whole, strlen(whole) },
		                              .raw = { raw, 2500 },
		                              .mode = MODE_READ,
		                              .rule = RULE_PRIVATE });
	}
	memset(raw, 1, sizeof(raw));
	for (size_t i = 0; i < 2; i++) {
		struct bytes longest = { raw, sizeof(raw) };
		struct event e = { .kind = EV_FILE_WRITE,
			           .status = STATUS_ASKED,
			           .pid = 7,
			           .program = { raw, 255 },
			           .path = longest,
			           .raw = longest,
			           .rule = RULE_PRIVATE };
		e.op = i == 0 ? OP_SYMLINK : OP_REMOVEXATTR;
		*(i == 0 ? &e.leads_to : &e.attribute) = longest;
		trace_add(t, &e);
	}
	finish(t);
	check("max(len(line) for line in open(sys.argv[2], 'rb').readlines()[1:-2]) <= 4096");
	check("r[5]['data']['leads_to_bytes'] == 4096 and r[5]['data']['leads_to_digest'] == "
	      "r[5]['data']['path_digest'] and r[6]['data']['attribute'][-1] == '\\u2026'");
	check("[x['data'].get('path_bytes') for x in r[1:5]] == [2505, 2505, 2505, None]");
	check("all(x['data']['cut'] and 'raw' not in x['data'] for x in r[1:5])");
	check("r[4]['data']['path'] == '/tmp/' + 'a' * 2500 and "
	      "r[1]['data']['path'].startswith('/tmp/\\1\\1') and "
	      "r[1]['data']['path_digest'] == 'sha256:' + "
	      "hashlib.sha256(b'/tmp/' + b'\\1' * 2500).hexdigest()");
}

/* A width (EVENT_WIDTHS) says how much of each text a line has. event_first_width(), the first one
 * that is tried, must not skip a width with which the event fits. */
static void test_no_width_is_passed_over_in_vain(void **state)
{
	static const char *const FILLS[] = {
		"\1",   "\xff",      "\"", "a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80",
		"\x80", "aaaaaaaa\1"
	};
	static const size_t SIZES[] = { 1, 127, 128, 129, 384, 640, 1024, 1025, 3072, 3074, 4096 };
	static char text[MAX_PATH_BYTES];
	auto_buf out;

	buf_init(&out, (size_t)1 << 20);
	for (size_t i = 0; i < ARRAY_LEN(FILLS) * ARRAY_LEN(SIZES); i++) {
		const char *fill = FILLS[i % ARRAY_LEN(FILLS)];
		const size_t size = SIZES[i / ARRAY_LEN(FILLS)];
		for (size_t k = 0; k < size; k++) {
			text[k] = fill[k % strlen(fill)];
		}
		struct event e = { .path = { text, size },
			           .path2 = { text, size / 2 },
			           .leads_to = { text, size },
			           .attribute = { text, size / 4 },
			           .program = { text, size < 255 ? size : 255 } };
		for (size_t w = 0; w < EVENT_WIDTHS_COUNT; w++) {
			struct json j;
			buf_reset(&out);
			json_init(&j, &out, false);
			event_put_data(&j, &e, &EVENT_WIDTHS[w]);
			assert_true(event_first_width(&e, out.len) <= w);
		}
		assert_int_equal(event_first_width(&e, 0), EVENT_WIDTHS_COUNT - 1);
	}
}

/* Each kind of event has its own room (a share of the trace). All rooms together make up the whole,
 * and each is larger than one line. */
static void test_rooms_add_up(void **state)
{
	static const struct room_part WHOLE[PLACE_COUNT] = {
		[IN_RECORD] = { TRACE_MAX_LINES - TRACE_RESERVE_LINES,
		                TRACE_MAX_BYTES - TRACE_RESERVE_BYTES },
		[IN_DOCUMENT] = { MAX_TRACE_EVENTS, DOCUMENT_EVENT_BYTES },
		[IN_VIOLATIONS] = { TRACE_MAX_VIOLATIONS, TRACE_VIOLATION_BYTES },
	};

	for (size_t place = 0; place < PLACE_COUNT; place++) {
		struct room_part sum = { 0, 0 };
		for (size_t i = 0; i <= ROOM_COMMON; i++) {
			const struct room_part *p = &ROOMS[i].parts[place];
			sum.lines += p->lines;
			sum.bytes += p->bytes;
			assert_true(p->lines == 0 || p->bytes >= ROOMS[i].line + 128);
		}
		assert_int_equal(sum.lines, WHOLE[place].lines);
		assert_int_equal(sum.bytes, WHOLE[place].bytes);
	}
}

/* Every threat class that a single event can have has a room, which has the name of the class. */
static void test_rooms_of_classes(void **state)
{
	for (int id = 0; id < CLASS_COUNT; id++) {
		const struct room_info *room = &ROOMS[ROOM_CLASS + id];
		if (id == CLASS_SUPPLY_CHAIN_ATTACK || id == CLASS_CREDENTIAL_EXFILTRATION) {
			assert_null(room->name); /* only several events together give this class */
			continue;
		}
		assert_string_equal(room->name, CLASSES[id].name);
		assert_true(room->line > TRACE_LINE_FRAME);
		for (size_t place = 0; place < PLACE_COUNT; place++) {
			assert_true(room->parts[place].lines > 0);
		}
	}
}

/* Returns a violation of the class that `room` is for, with the least severe operation that a flood
 * can use. */
static struct event violation_of(enum room room, const char *name)
{
	static const struct {
		enum class_id id;
		enum event_kind kind;
		const char *op, *mode, *reason, *dir;
	} ROWS[] = {
		{ CLASS_CREDENTIAL_HARVESTING, EV_FILE_BLOCKED, "open", "read", "credential_store",
		  "/home/u/.ssh" },
		{ CLASS_PRIVILEGE_ESCALATION, EV_SYSCALL_BLOCKED, "ptrace", NULL, "profile", "" },
		{ CLASS_SANDBOX_EVASION, EV_FILE_BLOCKED, "connect", NULL, "host_service", "/run" },
		{ CLASS_PERSISTENCE, EV_FILE_BLOCKED, "open", "create", "outside_plan",
		  "/etc/cron.d" },
		{ CLASS_COMMAND_AND_CONTROL, EV_NETWORK_EGRESS_BLOCKED, "connect", NULL, "ech",
		  "" },
		{ CLASS_UNAUTHORIZED_FILE_ACCESS, EV_FILE_BLOCKED, "open", "read", "outside_plan",
		  "/srv" },
		{ CLASS_DATA_EXFILTRATION, EV_NETWORK_EGRESS_BLOCKED, "resolve", NULL,
		  "not_declared", "" },
		{ CLASS_RESOURCE_ABUSE, EV_NETWORK_EGRESS_BLOCKED, "connect", NULL, "byte_limit",
		  "" },
		{ CLASS_DISCOVERY, EV_SYSCALL_BLOCKED, "syslog", NULL, "profile", "" },
		{ CLASS_NONE, EV_FILE_BLOCKED, "open", "create", "read_only", "/skill" },
	};
	static char whole[128];
	size_t i = 0;

	while (room != (ROWS[i].id == CLASS_NONE ? ROOM_VIOLATION
	                                         : (enum room)(ROOM_CLASS + (int)ROWS[i].id))) {
		i++;
	}
	snprintf(whole, sizeof(whole), "%s%s", ROWS[i].dir, name);
	return (struct event){ .kind = ROWS[i].kind,
		               .status = STATUS_DENIED,
		               .violation = true,
		               .op = op_from(ROWS[i].op),
		               .path = { whole, strlen(whole) },
		               .mode = mode_from(ROWS[i].mode),
		               .reason = reason_from(ROWS[i].reason) };
}

/* One class has as many violations as fit into its room, and more: each other class still gets its
 * line. */
static void test_no_violation_hides_a_worse_one(void **state)
{
	static const enum room FLOODS[] = { ROOM_VIOLATION, ROOM_CLASS + CLASS_DISCOVERY,
		                            ROOM_CLASS + CLASS_UNAUTHORIZED_FILE_ACCESS };
	char name[64], condition[600];

	for (size_t f = 0; f < ARRAY_LEN(FLOODS); f++) {
		const size_t most = ROOMS[ROOM_COMMON].parts[IN_RECORD].lines +
		                    ROOMS[ROOM_VIOLATION].parts[IN_RECORD].lines;
		const size_t past = 5;
		struct trace *t = begin();
		for (size_t i = 0; i < most + past; i++) {
			snprintf(name, sizeof(name), "/flood/%zu", i);
			struct event e = violation_of(FLOODS[f], name);
			trace_add(t, &e);
		}
		for (int room = ROOM_VIOLATION; room < ROOM_COUNT; room++) {
			if ((room == ROOM_VIOLATION || room >= ROOM_CLASS) &&
			    ROOMS[room].name != NULL && room != (int)FLOODS[f]) {
				struct event e = violation_of((enum room)room, "/calm");
				trace_add(t, &e);
			}
		}
		finish(t);
		snprintf(condition, sizeof(condition),
		         "calm(r[1:-2]) == 9 == calm(d['events']) == calm(d['policy_violations']) "
		         "and end['counters']['dropped_by'] == {'%s': %zu} and "
		         "end['counters']['violations'] == %zu and "
		         "d['counters']['violations_dropped'] == %zu - len(d['policy_violations'])",
		         ROOMS[FLOODS[f]].name, past, most + past + 9, most + past + 9);
		check(condition);
	}
}

/* Adds one event whose room is `room`. */
static void add_to(struct trace *t, enum room room, const char *name)
{
	struct bytes text = { name, strlen(name) };
	struct event e = { .op = OP_OPEN,
		           .status = STATUS_ASKED,
		           .path = text,
		           .rule = RULE_ENTRY,
		           .entry = "f:1:2" };

	if (room == ROOM_FRAME || room == ROOM_OUTPUT) {
		e = (struct event){ .message = text };
	} else if (room == ROOM_TOTAL || room == ROOM_CONNECTION) {
		e = (struct event){ .name = name, .port = 443, .reason = REASON_OK };
	}
	switch (room) {
	case ROOM_FRAME:
		e.kind = EV_EXIT_CODE;
		break;
	case ROOM_TOTAL:
		e.kind = EV_NETWORK_EGRESS_TOTAL;
		break;
	case ROOM_CONNECTION:
		e.kind = EV_NETWORK_EGRESS_ALLOWED;
		break;
	case ROOM_VIOLATION:
		e = violation_of(room, name);
		break;
	case ROOM_EXEC:
		e.kind = EV_PROCESS_SPAWNED;
		break;
	case ROOM_CHANGE:
		e.kind = EV_FILE_WRITE;
		break;
	case ROOM_OUTPUT:
		e.kind = EV_STDOUT;
		break;
	default:
		e.kind = EV_FILE_READ;
		e.rule = room == ROOM_READ ? e.rule : RULE_SYSTEM;
	}
	assert_int_equal(room_of(&e, classes_of(&e, plan.home).id), room);
	trace_add(t, &e);
}

/* One room gets far too many events. The event of each other room still gets its line in the record
 * and in the document. Dropped events are counted, and all of them are of the flooded room. */
static void test_no_flood_hides_another_kind(void **state)
{
	static const enum room FLOODS[] = { ROOM_OTHER, ROOM_CHANGE, ROOM_CONNECTION,
		                            ROOM_VIOLATION };
	char name[64], condition[600];

	for (size_t f = 0; f < ARRAY_LEN(FLOODS); f++) {
		struct trace *t = begin();
		const size_t many = 140000;
		for (size_t i = 0; i < many; i++) {
			snprintf(name, sizeof(name), "/flood/%zu", i);
			add_to(t, FLOODS[f], name);
		}
		for (enum room room = 0; room < ROOM_CLASS; room++) {
			snprintf(name, sizeof(name), "/calm/%d", (int)room);
			add_to(t, room, name);
		}
		finish(t);
		/* Depending on the flooded room, its limit of lines or of bytes is reached. */
		snprintf(condition, sizeof(condition),
		         "calm(r[1:-2]) == %d == calm(d['events']) and "
		         "(lambda c: c['dropped'] > 2000 and c['dropped_by'] == {'%s': "
		         "c['dropped']} and c['events'] + c['dropped'] == %zu)(end['counters'])",
		         ROOM_CLASS - 1, ROOMS[FLOODS[f]].name, many + ROOM_CLASS);
		check(condition);
		struct stat st;
		assert_int_equal(stat(record, &st), 0);
		assert_true((size_t)st.st_size <= TRACE_MAX_BYTES);
		assert_int_equal(stat(path, &st), 0);
		assert_true((size_t)st.st_size <= DOCUMENT_EVENT_BYTES + (1 << 20));
	}
}

/* Neither very long events nor many repeats may use the space of other rooms. */
#define LONG_NAMES 18000

static void test_no_flood_of_bytes_or_repeats(void **state)
{
	static char long_name[MAX_PATH_BYTES];
	struct trace *t = begin();
	char name[64];

	memset(long_name, 'x', sizeof(long_name));
	for (int i = 0; i < LONG_NAMES; i++) {
		snprintf(long_name, sizeof(long_name), "/%d", i);
		long_name[strlen(long_name)] = 'x';
		trace_add(t, &(struct event){ .kind = EV_FILE_READ,
		                              .status = STATUS_ABSENT,
		                              .op = OP_OPEN,
		                              .path = { long_name, sizeof(long_name) } });
	}
	/* adds each event twice, so that each has a repeat */
	for (int i = 0; i < 2 * TRACE_MAX_LINES / 10; i++) {
		snprintf(name, sizeof(name), "/flood/%d", i);
		add_to(t, ROOM_OTHER, name);
		add_to(t, ROOM_OTHER, name);
	}
	for (enum room room = 0; room < ROOM_OTHER; room++) {
		add_to(t, room, "/calm");
	}
	finish(t);
	check("calm(r[1:-2]) == 8 == calm(d['events']) and "
	      "set(end['counters']['dropped_by']) == {'other'} and "
	      "end['counters']['repeats'] == sum(x['count'] for x in r if 'repeat_of' in x) and "
	      "(lambda c: c['events'] + c['repeats'] + c['dropped'] == 18000 + 80000 + 8)"
	      "(end['counters'])");
}

static void test_line_cap(void **state)
{
	/* One event more than fits is dropped. */
	const int most = (int)(ROOMS[ROOM_COMMON].parts[IN_RECORD].lines +
	                       ROOMS[ROOM_OUTPUT].parts[IN_RECORD].lines);
	char name[32];
	struct trace *t = begin();

	for (int i = 0; i < most + 1; i++) {
		if (i < FOLD_ENTRIES) {
			snprintf(name, sizeof(name), "/%d", i);
			struct event e = attempt(name);
			e.violation = false;
			trace_add(t, &e);
		} else {
			trace_event(t, EV_STDOUT, "x", 1);
		}
	}
	/* After the limit, repeats are still counted, and the end of the record is written. */
	struct event again = attempt("/4095");
	again.violation = false;
	trace_add(t, &again);
	/* There is still space for a violation, because no other event may use this space. */
	struct event grave = attempt("/grave");
	trace_add(t, &grave);
	trace_eventf(t, EV_EXIT_CODE, "0");
	finish(t);
	check("any(x.get('violation') and x['data']['path'] == '/grave' for x in r) and "
	      "end['counters']['dropped'] == 1 and end['counters']['repeats'] == 1 and "
	      "end['counters']['events'] == 129410 and r[-1]['kind'] == 'signature'");
}

static void test_byte_cap(void **state)
{
	static char text[MAX_PATH_BYTES];
	struct trace *t = begin();

	memset(text, '\x01', sizeof(text));
	for (int i = 0; i < 1500; i++) { /* 49 KB each */
		trace_add(t, &(struct event){ .kind = EV_STDOUT,
		                              .message = { text, sizeof(text) },
		                              .path = { text, sizeof(text) } });
	}
	trace_eventf(t, EV_EXIT_CODE, "0");
	finish(t);
	struct stat st;
	assert_int_equal(stat(record, &st), 0);
	const size_t most = ROOMS[ROOM_COMMON].parts[IN_RECORD].bytes +
	                    ROOMS[ROOM_OUTPUT].parts[IN_RECORD].bytes;
	assert_true((size_t)st.st_size < most);
	assert_true((size_t)st.st_size > most - (size_t)3 * 65536 - 3000UL * TRACE_LINE_FRAME);
	check("end['counters']['dropped'] + end['counters']['events'] == 1501 and "
	      "end['counters']['dropped'] > 100 and r[-3]['kind'] == 'exit_code'");
}

static void test_layers_once(void **state)
{
	struct layer_report layers[LAYER_COUNT] = { 0 };
	struct ssb_error err = { 0 };
	struct trace *t = begin();

	layers[LAYER_SECCOMP] = (struct layer_report){ LAYER_ON, "profile default" };
	trace_layers(t, layers);
	trace_event(t, EV_STDOUT, "x", 1);
	assert_int_equal(trace_close(t, layers, NULL, &err), 0);
	trace_free(t);
	check("[x['kind'] for x in r] == ['run', 'layers', 'stdout', 'end', 'signature']");
	check("r[1]['layers'] == d['layers'] and len(d['layers']) == 9");
	check("end['end'] == 'failed' and end['exit_code'] is None and end['summary'] is None");
}

static void test_waiting_lines(void **state)
{
	struct trace *t = begin();
	struct ssb_error err = { 0 };
	struct stat before, after;

	assert_int_equal(trace_sync(t, &err), 0);
	trace_place(t);
	assert_int_equal(trace_due(t), 0);
	assert_int_equal(stat(record, &before), 0);
	uint64_t begun = clock_ms();
	trace_event(t, EV_STDOUT, "x", 1);
	uint64_t due = trace_due(t);
	assert_true(due > begun && due <= clock_ms() + RECORD_WAIT_MS);
	trace_tick(t); /* nothing is written before the time is due */
	if (clock_ms() < due) {
		assert_int_equal(stat(record, &after), 0);
		assert_int_equal(before.st_size, after.st_size);
	}
	struct event e = attempt("/a");
	trace_add(t, &e); /* a violation is written at once */
	assert_true(trace_due(t) <= clock_ms());
	trace_tick(t);
	assert_int_equal(stat(record, &after), 0);
	assert_true(after.st_size > before.st_size);
	assert_int_equal(trace_due(t), 0);
	finish(t);
}

static int others; /* so many calls of flock() fail, as if another process had the lock */

int flock(int fd, int operation)
{
	if (others > 0) {
		others--;
		errno = EWOULDBLOCK;
		return -1;
	}
	return (int)syscall(SYS_flock, fd, operation);
}

/* Another process has locked the record for a moment, to check whether the run is active: the run
 * waits for the lock. */
static void test_lock_is_waited_for(void **state)
{
	others = 20;
	struct trace *t = begin();
	assert_int_equal(others, 0);
	trace_event(t, EV_STDOUT, "x", 1);
	char flat[PATH_MAX];
	snprintf(flat, sizeof(flat), "%s/runs/%s.trace.jsonl", tmp, trace_id(t));
	auto_fd fd = open(flat, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_SH | LOCK_NB), -1);
	assert_int_equal(errno, EWOULDBLOCK);
	finish(t);
	assert_int_equal(flock(fd, LOCK_SH | LOCK_NB), 0);
	/* If the other process keeps the lock, the run begins without it, and locks the record
	 * later. */
	others = INT_MAX;
	t = begin();
	others = 0;
	trace_place(t);
	auto_fd late = open(record, O_RDONLY | O_CLOEXEC);
	assert_true(late >= 0);
	assert_int_equal(flock(late, LOCK_SH | LOCK_NB), -1);
	finish(t);
}

static void test_lock(void **state)
{
	struct trace *t = begin();

	trace_place(t);
	auto_fd fd = open(record, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_SH | LOCK_NB), -1);
	assert_int_equal(errno, EWOULDBLOCK);
	finish(t);
	assert_int_equal(flock(fd, LOCK_SH | LOCK_NB), 0);
}

/* if set, the record of this run is moved into its directory after the next fstatat() */
static struct trace *moves;

int fstatat64(int dir, const char *name, struct stat64 *ret, int flags)
{
	long rc = syscall(SYS_newfstatat, dir, name, ret, flags);
	int error = errno;

	if (moves != NULL) {
		trace_place(moves);
		moves = NULL;
	}
	errno = error;
	return (int)rc;
}

/* A record moves into its directory while another process lists the runs: the run is still in the
 * list. */
static void test_it_moves_while_it_is_listed(void **state)
{
	AUTO(runs_done) struct runs runs = RUNS_NONE;
	struct ssb_error err = { 0 };
	struct trace *t = begin();

	assert_int_equal(runs_open(&runs, tmp, &err), 0);
	assert_int_equal(runs.n, 1);
	moves = t;
	runs_stat(&runs);
	assert_null(moves);
	assert_int_equal(runs.n, 1);
	runs_stat(&runs); /* now the record is found at its new path */
	assert_int_equal(runs.n, 1);
	finish(t);
}

static void test_broken(void **state)
{
	struct rlimit old;
	struct ssb_error err = { 0 };
	struct stat st;
	struct trace *t = begin();
	char part[PATH_MAX + 8];

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(trace_sync(t, &err), 0);
	trace_place(t);
	assert_int_equal(stat(record, &st), 0);
	struct rlimit small = { (rlim_t)st.st_size + 400, old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_false(trace_broken(t));
	for (int i = 0; i < 5; i++) {
		trace_violation(t, EV_POLICY_VIOLATION, "number %d", i);
	}
	trace_tick(t);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_true(trace_broken(t));
	assert_int_equal(trace_failure(t)->sys_errno, EFBIG);
	assert_int_equal(trace_close(t, NULL, NULL, &err), -1);
	assert_int_equal(err.sys_errno, EFBIG);
	trace_free(t);
	/* The lines that were written are valid, and the incomplete document has been removed. */
	check("d is None and [x['kind'] for x in r] == ['run', 'policy_violation', "
	      "'policy_violation']");
	snprintf(part, sizeof(part), "%s.part", path);
	assert_int_equal(stat(part, &st), -1);
}

/* If other users can read the key, the run does not start. */
static void test_key(void **state)
{
	struct ssb_error err = { 0 };
	struct trace *t = begin();

	finish(t);
	assert_int_equal(sh("chmod 644 \"$1/trace.key\""), 0);
	t = NULL;
	assert_int_equal(trace_open(&plan, NULL, &owner, &t, &err), -1);
	assert_null(t);
	assert_int_equal(sh("chmod 600 \"$1/trace.key\""), 0);
	finish(begin());
	/* Without a valid key, the record could not be signed: the run does not start. */
	assert_int_equal(sh("cp -p \"$1/trace.key\" \"$1/k\"; : >\"$1/trace.key\""), 0);
	assert_int_equal(trace_open(&plan, NULL, &owner, &t, &err), -1);
	assert_null(t);
	assert_int_equal(sh("mv \"$1/k\" \"$1/trace.key\""), 0);
	finish(begin());
}

/* A plan that is too large for one line is replaced in the record by "plan_cut"; the document
 * contains the plan. */
static void test_large_plan(void **state)
{
	static char arg[40000];
	char *argv[] = { "cmd", arg, arg, NULL };

	memset(arg, 'x', sizeof(arg) - 1);
	plan.argv = (struct string_list){ argv, 2 };
	finish(begin());
	check("r[0]['plan']['argv'] == d['plan']['argv'] and 'plan_cut' not in r[0]");
	plan.argv.n = 3;
	finish(begin());
	check("r[0]['plan'] is None and r[0]['plan_cut'] and len(d['plan']['argv']) == 3");
	check("r[0]['plan_digest'] == 'sha256:' + hashlib.sha256(json.dumps(d['plan'], "
	      "separators=(',', ':')).encode()).hexdigest()");
	plan.argv.n = 0;
}

static void number_member(struct json *j, void *arg)
{
	json_kuint(j, "number", *(const uint32_t *)arg);
}

/* Events with extra data of any size pass through the queue from observer to trace. The next event
 * in the queue must not overwrite the text of the one that was taken. */
static void test_by_the_queue(void **state)
{
	static const char name[] = "/usr/bin/0123456789abcdefghijklmnopqrstuvwxyz";
	struct observe_queue q;
	struct trace *t = begin();
	uint32_t numbers[12];

	assert_int_equal(observe_queue_init(&q), 0);
	for (size_t n = 1; n <= ARRAY_LEN(numbers); n++) {
		for (size_t len = 10; len < sizeof(name); len++) {
			numbers[0] = (uint32_t)len;
			struct event e = { .kind = EV_SYSCALL_FILTERED,
				           .status = STATUS_ASKED,
				           .op = OP_SIGNAL,
				           .program = { name, len },
				           .more = number_member,
				           .more_arg = numbers,
				           .more_size = n * sizeof(numbers[0]),
				           .apart = n };
			observe_queue_put(&q, &e);
		}
	}
	observe_queue_empty(&q, t);
	observe_queue_done(&q);
	finish(t);
	check("len([e for e in r if e['kind'] == 'syscall_filtered']) == 12 * 36");
	check("all(e['data']['program'] == "
	      "'/usr/bin/0123456789abcdefghijklmnopqrstuvwxyz'[:e['data']['number']]"
	      " for e in r if e['kind'] == 'syscall_filtered')");
}

/* The copy of an event has all its texts and arguments, and no pointer into the memory of the
 * original. */
static void test_a_copy_owns_its_texts(void **state)
{
	alignas(EVENT_ALIGN) char place[2048];
	char texts[EVENT_BYTES + EVENT_STRINGS + 2][8];
	uint32_t number = 7;
	const struct bytes args[] = { { texts[EVENT_BYTES + EVENT_STRINGS], 5 },
		                      { texts[EVENT_BYTES + EVENT_STRINGS + 1], 0 } };
	struct event e = { .kind = EV_PROCESS_SPAWNED,
		           .op = OP_EXEC,
		           .args = args,
		           .n_args = ARRAY_LEN(args),
		           .more = number_member,
		           .more_arg = &number,
		           .more_size = sizeof(number) };

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		snprintf(texts[i], sizeof(texts[i]), "text%c", (char)('a' + i));
	}
	for (size_t i = 0; i < EVENT_BYTES; i++) {
		e.bytes[i] = (struct bytes){ texts[i], 5 };
	}
	for (size_t i = 0; i < EVENT_STRINGS; i++) {
		e.strings[i] = texts[EVENT_BYTES + i];
	}
	assert_true(event_size(&e) <= sizeof(place));
	struct event *copy = event_copy(place, event_size(&e), &e);
	memset(texts, 'x', sizeof(texts));
	number = 0;
	for (size_t i = 0; i < EVENT_BYTES; i++) {
		assert_int_equal(copy->bytes[i].n, 5);
		assert_int_equal(copy->bytes[i].p[4], 'a' + i);
	}
	for (size_t i = 0; i < EVENT_STRINGS; i++) {
		assert_int_equal(strlen(copy->strings[i]), 5);
		assert_int_equal(copy->strings[i][4], 'a' + EVENT_BYTES + i);
	}
	assert_memory_equal(copy->args[0].p, "textm", 5);
	assert_int_equal(copy->args[1].n, 0);
	assert_int_equal(*(const uint32_t *)copy->more_arg, 7);
	assert_int_equal(copy->op, OP_EXEC);

	/* A missing text stays NULL, and an empty text stays empty. */
	const struct event less = { .program = { NULL, 0 }, .path = { "", 0 } };
	copy = event_copy(place, event_size(&less), &less);
	assert_null(copy->program.p);
	assert_non_null(copy->path.p);
	assert_null(copy->name);
	assert_null(copy->args);
}

/* If the queue is not emptied, harmless events do not use the space that is reserved for
 * violations. Violations for which there is no space are counted by their kind. */
static void test_a_queue_that_nobody_empties(void **state)
{
	enum { MANY = 10000, CROWDED = 2 };
	struct observe_queue q;
	struct trace *t = begin();
	struct trace_tally tally = { 0 };
	char name[64];
	uint64_t told = 0;

	trace_count(t, &tally);
	assert_int_equal(observe_queue_init(&q), 0);
	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "/harmless/%d", i);
		struct event e = attempt(name);
		e.violation = false;
		observe_queue_put(&q, &e);
	}
	assert_true(q.dropped[ROOM_OTHER] > 0);
	assert_true(QUEUE_BYTES - q.used >= 2 * QUEUE_RESERVE);
	for (int i = 0; i < 100; i++) { /* more important events than reads still fit */
		snprintf(name, sizeof(name), "/grant/%d", i);
		struct event e = { .kind = EV_FILE_WRITE,
			           .status = STATUS_ASKED,
			           .op = OP_OPEN,
			           .path = { name, strlen(name) },
			           .rule = RULE_ENTRY,
			           .entry = "f:1:2" };
		observe_queue_put(&q, &e);
	}
	assert_int_equal(q.dropped[ROOM_CHANGE], 0);
	uint64_t dropped = q.dropped[ROOM_OTHER];
	while (q.crowded[EV_FILE_BLOCKED] < CROWDED) {
		snprintf(name, sizeof(name), "/grave/%d", (int)told);
		struct event e = attempt(name);
		observe_queue_put(&q, &e);
		told++;
	}
	assert_int_equal(q.dropped[ROOM_OTHER], dropped);
	observe_queue_empty(&q, t);
	assert_int_equal(q.crowded[EV_FILE_BLOCKED], 0);
	observe_queue_done(&q);
	assert_int_equal(trace_violations(t), told);
	assert_int_equal(tally.total, told);
	finish(t);
	check("sum(e.get('violation', False) and e['data'].get('count', 1) for e in r) == "
	      "end['counters']['violations'] == end['summary']['total_enforcements']");
	check("[e['data'] for e in r if e.get('message') == 'not_listed, 2 times'] == "
	      "[{'reason': 'not_listed', 'count': 2}]");
	check("len([e for e in r if e.get('data', {}).get('path', '').startswith('/harmless')]) + "
	      "end['counters']['dropped'] == 10000 and "
	      "end['counters']['dropped_by'] == {'other': end['counters']['dropped']}");
	check("len([e for e in r if e.get('data', {}).get('path', '').startswith('/grant')]) == "
	      "100");
}

/* One event with the member `times` counts as so many events: in its first line, as a repeat, and
 * if it is dropped. */
static void test_events_that_stand_for_several(void **state)
{
	const int names = 2 * FOLD_ENTRIES;
	char name[32];
	struct trace *t = begin();

	for (int again = 0; again < 2; again++) {
		struct event e = attempt("/several");
		e.times = 5;
		e.reason = REASON_UNREADABLE;
		trace_add(t, &e);
	}
	for (int i = 0; i < TRACE_MAX_LINES; i++) {
		trace_event(t, EV_STDOUT, "x", 1);
	}
	/* After the limit of violations, further ones are only counted. */
	for (int i = 0; i < names; i++) {
		snprintf(name, sizeof(name), "/%d", i);
		struct event e = attempt(name);
		e.times = 3;
		trace_add(t, &e);
	}
	finish(t);
	check("(lambda c: [x['count'] for x in r if x.get('repeat_of') == 1] == [9] and "
	      "c['unreadable'] == 10 and c['violations'] == 10 + 3 * 8192 and "
	      "c['repeats'] == sum(x['count'] for x in r if 'repeat_of' in x) and "
	      "c['events'] + c['repeats'] + c['dropped'] == 10 + 200000 + 3 * 8192)"
	      "(end['counters'])");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_members),
		TEST(test_repeats_are_counted),
		TEST(test_too_many_kinds_of_attempts),
		TEST(test_long_events_are_cut),
		TEST(test_absent_names_are_short_lines),
		TEST(test_no_width_is_passed_over_in_vain),
		TEST(test_rooms_add_up),
		TEST(test_rooms_of_classes),
		TEST(test_no_violation_hides_a_worse_one),
		TEST(test_no_flood_hides_another_kind),
		TEST(test_no_flood_of_bytes_or_repeats),
		TEST(test_line_cap),
		TEST(test_byte_cap),
		TEST(test_layers_once),
		TEST(test_waiting_lines),
		TEST(test_lock),
		TEST(test_lock_is_waited_for),
		TEST(test_it_moves_while_it_is_listed),
		TEST(test_broken),
		TEST(test_key),
		TEST(test_large_plan),
		TEST(test_by_the_queue),
		TEST(test_a_copy_owns_its_texts),
		TEST(test_a_queue_that_nobody_empties),
		TEST(test_events_that_stand_for_several),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
