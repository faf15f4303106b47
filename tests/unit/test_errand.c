/* test_errand.c - errands: their results, how they end, how many may run at once, and that no
 * process is left. */
#include "serve_world.h"

#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/limits.h"
#include "mcp/link.h"
#include "os/clock.h"
#include "os/loop.h"
#include "serve/errand.h"

struct seen {
	struct errand *errand;
	int ended;
	int nth; /* this was the nth errand that ended (from 1) */
	enum errand_fate fate;
	char why[128];
	char data[64];
	size_t len;
	size_t bytes; /* number of bytes to return */
	int fd;       /* an fd of the test, which the errand uses */
};

static int n_ended;
static int n_wanted;

static int setup(void **state)
{
	struct ssb_error err = { 0 };

	n_ended = 0;
	n_wanted = 1;
	world_setup(state);
	assert_int_equal(loop_new(&w->serve.loop, &err), 0);
	return errands_new(&w->serve, &w->serve.errands, &err);
}

static int teardown(void **state)
{
	errands_free(w->serve.errands);
	loop_free(w->serve.loop);
	return world_teardown(state);
}

static void on_ended(void *arg, const struct errand_end *end)
{
	struct seen *s = arg;

	s->ended++;
	s->fate = end->fate;
	s->len = end->len;
	snprintf(s->why, sizeof(s->why), "%s", end->why != NULL ? end->why : "");
	memcpy(s->data, end->data != NULL ? end->data : "",
	       end->len < sizeof(s->data) ? end->len : sizeof(s->data) - 1);
	s->nth = n_ended + 1;
	if (++n_ended == n_wanted) {
		loop_stop(w->serve.loop);
	}
}

static void begin_wish(struct seen *s, struct errand_wish *wish)
{
	struct ssb_error err = { 0 };

	wish->ended = on_ended;
	wish->arg = s;
	wish->who = wish->who != NULL ? wish->who : "a";
	assert_int_equal(errand_start(&w->serve, wish, &s->errand, &err), 0);
	/* the callback is not called before errand_start() returns */
	assert_int_equal(s->ended, 0);
}

static void run(struct seen *s, void (*fn)(void *arg, struct buf *out))
{
	struct errand_wish wish = { .run = fn };

	begin_wish(s, &wish);
	assert_int_equal(loop_run(w->serve.loop), 0);
	assert_int_equal(s->ended, 1);
}

static void stop(void *arg)
{
	loop_stop(arg);
}

static void turn(uint64_t ms)
{
	assert_int_equal(loop_after(w->serve.loop, ms, stop, w->serve.loop, NULL), 0);
	assert_int_equal(loop_run(w->serve.loop), 0);
}

static void say_hello(void *arg, struct buf *out)
{
	(void)arg;
	buf_adds(out, "hello");
}

static void sleep_long(void *arg, struct buf *out)
{
	(void)arg;
	(void)out;
	sleep(60);
}

/* ---- results ------------------------------------------------------------------------- */

static void brings_bytes(void **state)
{
	struct seen s = { 0 };

	run(&s, say_hello);
	assert_int_equal(s.fate, ERRAND_DONE);
	assert_string_equal(s.data, "hello");
	assert_int_equal(world_children(), 0);
}

static void bring_many(void *arg, struct buf *out)
{
	const struct seen *s = arg;
	static const char block[4096];

	for (size_t left = s->bytes; left > 0;) {
		size_t n = left < sizeof(block) ? left : sizeof(block);
		buf_add(out, block, n);
		left -= n;
	}
}

static void brings_no_more_than_it_may(void **state)
{
	/* the largest result: the buffer needs one byte for its NUL */
	struct seen at = { .bytes = MAX_ERRAND_BYTES - 1 };
	struct seen past = { .bytes = MAX_ERRAND_BYTES + 1 };

	run(&at, bring_many);
	assert_int_equal(at.fate, ERRAND_DONE);
	assert_int_equal(at.len, at.bytes);
	n_wanted++;
	run(&past, bring_many);
	assert_int_equal(past.fate, ERRAND_LARGE);
	assert_non_null(strstr(past.why, "too large"));
}

/* Reports whether the errand has the server's fds and standard input. It must have neither. */
static void look_around(void *arg, struct buf *out)
{
	const struct seen *s = arg;
	char byte;

	buf_addc(out, fcntl(s->fd, F_GETFD) < 0 ? 'n' : 'y');
	buf_addc(out, read(STDIN_FILENO, &byte, 1) == 0 ? 'n' : 'y');
	buf_addf(out, " %d", getpriority(PRIO_PROCESS, 0) > 0);
}

static void has_nothing_of_the_server(void **state)
{
	struct seen s = { 0 };
	int p[2];

	assert_int_equal(pipe(p), 0);
	assert_int_equal(write(p[1], "x", 1), 1);
	int before = dup(STDIN_FILENO);
	assert_true(dup2(p[0], STDIN_FILENO) >= 0);
	s.fd = p[1];
	assert_true(fcntl(s.fd, F_GETFD) >= 0); /* the control */
	run(&s, look_around);
	assert_true(dup2(before, STDIN_FILENO) >= 0);
	assert_string_equal(s.data, "nn 1");
	close(before);
	close(p[0]);
	close(p[1]);
}

/* ---- how it ends ----------------------------------------------------------------------- */

static void crash(void *arg, struct buf *out)
{
	(void)arg;
	buf_adds(out, "half");
	(void)raise(SIGKILL);
}

static void leave(void *arg, struct buf *out)
{
	(void)arg;
	(void)out;
	_exit(1);
}

static void a_crash_is_an_error(void **state)
{
	struct seen s = { 0 };

	run(&s, crash);
	assert_int_equal(s.fate, ERRAND_CRASHED);
	assert_int_equal(s.len, 0);
	assert_true(s.why[0] != '\0');
	n_wanted++;
	s = (struct seen){ 0 };
	run(&s, leave);
	assert_int_equal(s.fate, ERRAND_CRASHED);
}

static void too_long_is_an_error(void **state)
{
	struct seen s = { 0 };
	struct errand_wish wish = { .run = sleep_long, .limit_ms = 100 };
	uint64_t begin = clock_ms();

	begin_wish(&s, &wish);
	assert_int_equal(loop_run(w->serve.loop), 0);
	assert_int_equal(s.fate, ERRAND_LATE);
	assert_non_null(strstr(s.why, "too long"));
	assert_true(clock_ms() - begin < 30000);
	assert_int_equal(world_children(), 0);
}

static void canceled_leaves_nothing(void **state)
{
	struct seen s = { 0 };
	struct errand_wish wish = { .run = sleep_long };

	begin_wish(&s, &wish);
	turn(100);
	assert_int_equal(world_children(), 1); /* the control */
	errand_cancel(s.errand);
	assert_int_equal(s.ended, 0);
	assert_int_equal(loop_run(w->serve.loop), 0);
	assert_int_equal(s.fate, ERRAND_CANCELED);
	assert_int_equal(world_children(), 0);
}

/* ---- how many ---------------------------------------------------------------------------- */

/* Locks the file "cue". Errands open this file and wait until the test releases the lock. */
static int hold(void)
{
	auto_free char *path = world_path("cue");
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	return fd;
}

static void open_and_wait(void *arg, struct buf *out)
{
	auto_free char *path = world_path("cue");

	(void)arg;
	/* wait until the test releases the lock */
	(void)flock(open(path, O_RDONLY | O_CLOEXEC), LOCK_SH);
	buf_adds(out, "went");
}

/* A call that has become a task. An errand answers it. */
struct asked {
	struct seen seen;
	struct mcp_call *call;
};

static void answered(void *arg, const struct errand_end *end)
{
	struct asked *a = arg;

	mcp_on_cancel(a->call, NULL, NULL);
	mcp_done(a->call);
	on_ended(&a->seen, end);
}

static void on_call(void *arg, struct mcp_call *c)
{
	struct asked *a = arg;
	const struct errand_wish wish = { .run = open_and_wait, .ended = answered, .arg = a };
	struct ssb_error err = { 0 };

	a->call = c;
	assert_true(mcp_become_task(c, "it takes long"));
	assert_int_equal(errand_of_call(&w->serve, c, &wish, &err), 0);
}

static void unheard(struct mcp_out *o, enum mcp_kind kind, int status, const char *json, size_t len)
{
	(void)o;
	(void)kind;
	(void)status;
	(void)json;
	(void)len;
}

static void unneeded(struct mcp_out *o)
{
	(void)o;
}

/* The connection on which a task was started ends. The task continues, because other connections
 * with the same token can ask for its result, and its errand still counts for that token. */
static void outlives_the_connection(void **state)
{
	static const char CALL[] =
	        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"_meta\":{"
	        "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
	        "\"io.modelcontextprotocol/clientCapabilities\":{\"extensions\":{"
	        "\"io.modelcontextprotocol/tasks\":{}}}}}}";
	static const struct mcp_method METHOD = { "tools/call", on_call, 0 };
	struct asked a = { 0 };
	struct seen next = { 0 };
	const struct mcp_app app = { .name = "t",
		                     .version = "1",
		                     .features = MCP_TOOLS | MCP_TASKS,
		                     .methods = &METHOD,
		                     .n_methods = 1,
		                     .arg = &a };
	struct mcp_out out = { .send = unheard, .end = unneeded };
	struct mcp_message m = { 0 };
	struct mcp_peer *heir = NULL, *peer = NULL;
	struct mcp_server *server = NULL;
	struct ssb_error err = { 0 };
	const char *why = NULL;
	int code = 0;
	auto_fd cue = hold();

	n_wanted = 2;
	assert_int_equal(mcp_server_new(w->serve.loop, &app, &server, &err), 0);
	assert_int_equal(mcp_peer_new(server, "http:token", NULL, &heir), 0);
	assert_int_equal(mcp_peer_new(server, "http:token", NULL, &peer), 0);
	assert_int_equal(mcp_message_read(&m, CALL, sizeof(CALL) - 1, &code, &why), 0);
	mcp_receive(peer, &out, &m);
	turn(50);
	mcp_out_gone(peer, &out);
	mcp_peer_leave(peer, heir);
	struct errand_wish wish = { .run = open_and_wait, .who = "http:token" };
	begin_wish(&next, &wish);
	turn(50);
	assert_int_equal(world_children(), 2);
	assert_int_equal(flock(cue, LOCK_UN), 0);
	assert_int_equal(loop_run(w->serve.loop), 0);
	assert_int_equal(a.seen.ended, 1);
	assert_int_equal(next.ended, 1);
	mcp_peer_free(heir);
	mcp_server_free(server);
}

static void so_many_at_once(void **state)
{
	enum { EACH = MAX_ERRANDS_EACH + 3, CLIENTS = 4 };
	static const char *const WHO[CLIENTS] = { "a", "b", "c", "d" };
	auto_free struct seen *s = calloc((size_t)EACH * CLIENTS, sizeof(*s));
	struct seen late = { 0 };
	auto_fd cue = hold();

	assert_non_null(s);
	n_wanted = 1 + EACH * CLIENTS;
	for (size_t i = 0; i < EACH; i++) {
		struct errand_wish wish = { .run = open_and_wait, .who = "a" };
		begin_wish(&s[i], &wish);
	}
	turn(200);
	/* more processes are allowed, but not for client "a" */
	assert_int_equal(world_children(), MAX_ERRANDS_EACH);
	for (size_t i = EACH; i < (size_t)EACH * CLIENTS; i++) {
		struct errand_wish wish = { .run = open_and_wait, .who = WHO[i / EACH] };
		begin_wish(&s[i], &wish);
	}
	turn(200);
	assert_int_equal(world_children(), MAX_ERRANDS);
	assert_int_equal(n_ended, 0);

	/* An errand that waits for its turn can be canceled before it begins. */
	struct errand_wish wish = { .run = open_and_wait, .who = "e" };
	begin_wish(&late, &wish);
	errand_cancel(late.errand);
	turn(50);
	assert_int_equal(late.fate, ERRAND_CANCELED);
	assert_int_equal(late.ended, 1);

	assert_int_equal(flock(cue, LOCK_UN), 0);
	assert_int_equal(loop_run(w->serve.loop), 0);
	for (size_t i = 0; i < (size_t)EACH * CLIENTS; i++) {
		assert_int_equal(s[i].ended, 1);
		assert_string_equal(s[i].data, "went");
	}
	assert_int_equal(world_children(), 0);
}

/* When an errand ends, the next one is of the client with the fewest running errands, not of the
 * client that asked first. */
static void the_fewest_come_first(void **state)
{
	struct seen a[MAX_ERRANDS_EACH + 1] = { 0 };
	struct seen others[MAX_ERRANDS - MAX_ERRANDS_EACH + 1] = { 0 };
	struct seen last = { 0 };
	auto_fd cue = hold();

	n_wanted = (int)(ARRAY_LEN(a) + ARRAY_LEN(others)) + 1;
	for (size_t i = 0; i < ARRAY_LEN(a) - 1; i++) {
		struct errand_wish wish = { .run = open_and_wait, .who = "a" };
		begin_wish(&a[i], &wish);
	}
	for (size_t i = 0; i < ARRAY_LEN(others) - 1; i++) {
		struct errand_wish wish = { .run = open_and_wait, .who = "b" };
		begin_wish(&others[i], &wish);
	}
	turn(200);
	assert_int_equal(world_children(), MAX_ERRANDS);
	/* As many errands are running as are allowed, and three more wait. The first of them to
	 * start must be that of the client without a running errand. */
	struct errand_wish of_a = { .run = say_hello, .who = "a" };
	struct errand_wish of_b = { .run = say_hello, .who = "b" };
	struct errand_wish of_c = { .run = say_hello, .who = "c" };
	begin_wish(&a[ARRAY_LEN(a) - 1], &of_a);
	begin_wish(&others[ARRAY_LEN(others) - 1], &of_b);
	begin_wish(&last, &of_c);
	errand_cancel(a[0].errand);
	for (int i = 0; i < 500 && a[ARRAY_LEN(a) - 1].ended == 0; i++) {
		turn(20);
	}
	assert_int_equal(a[0].nth, 1);
	assert_int_equal(last.nth, 2);
	assert_int_equal(a[ARRAY_LEN(a) - 1].nth, 3);
	assert_int_equal(others[ARRAY_LEN(others) - 1].ended, 0);
	assert_int_equal(flock(cue, LOCK_UN), 0);
	assert_int_equal(loop_run(w->serve.loop), 0);
}

static void the_end_ends_all(void **state)
{
	enum { N = MAX_ERRANDS_EACH + 2 };
	struct seen s[N] = { 0 };
	struct ssb_error err = { 0 };

	n_wanted = -1;
	for (int i = 0; i < N; i++) {
		struct errand_wish wish = { .run = sleep_long };
		begin_wish(&s[i], &wish);
	}
	turn(100);
	assert_int_equal(world_children(), MAX_ERRANDS_EACH);
	errands_free(w->serve.errands);
	assert_int_equal(errands_new(&w->serve, &w->serve.errands, &err), 0);
	for (int i = 0; i < N; i++) {
		assert_int_equal(s[i].ended, 1);
		assert_int_equal(s[i].fate, ERRAND_CANCELED);
	}
	assert_int_equal(world_children(), 0);
}

/* If the server is killed, its errand must die, too. The test notices this by a pipe that the
 * errand keeps open. */
static void dies_with_the_server(void **state)
{
	int life[2];
	char byte;

	assert_int_equal(pipe(life), 0);
	pid_t pid = fork();
	if (pid == 0) {
		struct seen s = { 0 };
		struct errand_wish wish = { .run = sleep_long };
		/* An errand keeps its standard error open. This is the pipe, so the test sees by it
		 * whether the errand is running. */
		(void)dup2(life[1], STDERR_FILENO);
		close(life[0]);
		close(life[1]);
		begin_wish(&s, &wish);
		turn(200);
		(void)!write(STDERR_FILENO, world_children() == 1 ? "x" : "?", 1);
		(void)raise(SIGKILL);
	}
	close(life[1]);
	assert_int_equal(read(life[0], &byte, 1), 1);
	assert_int_equal(byte, 'x'); /* the control */
	struct pollfd p = { .fd = life[0], .events = POLLIN };
	assert_int_equal(poll(&p, 1, 20000), 1);
	assert_int_equal(read(life[0], &byte, 1), 0);
	close(life[0]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* ---- work that is always finished ---------------------------------------------------------- */

static int write_mark(void *arg)
{
	auto_free char *path = world_path("cue");
	auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);

	(void)arg;
	(void)flock(fd, LOCK_SH); /* wait until the test releases the lock */
	world_file("mark", "done");
	return 0;
}

static int fail_after(void *arg)
{
	(void)arg;
	return -1;
}

static bool marked(void)
{
	auto_free char *path = world_path("mark");

	for (int i = 0; i < 200; i++) {
		if (access(path, F_OK) == 0) {
			return true;
		}
		usleep(50000);
	}
	return false;
}

static void once_begun_it_is_finished(void **state)
{
	struct seen s = { 0 };
	struct errand_wish wish = { .run = say_hello, .after = write_mark };
	auto_fd cue = hold();

	begin_wish(&s, &wish);
	turn(100);
	errand_cancel(s.errand);
	assert_int_equal(flock(cue, LOCK_UN), 0);
	assert_int_equal(loop_run(w->serve.loop), 0);
	assert_int_equal(s.fate, ERRAND_DONE);
	assert_string_equal(s.data, "hello");
	assert_true(marked());

	s = (struct seen){ 0 };
	n_wanted++;
	wish = (struct errand_wish){ .run = say_hello, .after = fail_after };
	begin_wish(&s, &wish);
	assert_int_equal(loop_run(w->serve.loop), 0);
	assert_int_equal(s.fate, ERRAND_UNDONE);
}

static void nobody_waits_for_what_follows(void **state)
{
	struct seen s = { 0 };
	struct errand_wish wish = { .run = say_hello, .after = write_mark, .limit_ms = 3000 };
	auto_fd cue = hold();

	begin_wish(&s, &wish);
	assert_int_equal(loop_run(w->serve.loop), 0);
	assert_int_equal(s.fate, ERRAND_DONE);
	assert_string_equal(s.data, "hello");
	assert_int_equal(world_children(), 1);
	assert_int_equal(flock(cue, LOCK_UN), 0);
	assert_true(marked());
	for (int i = 0; i < 100 && world_children() > 0; i++) {
		turn(100);
	}
	assert_int_equal(s.ended, 1);
	assert_int_equal(world_children(), 0);
}

/* The work that follows an errand (`after`) is completed even if the server ends meanwhile. */
static void what_follows_outlives_the_server(void **state)
{
	struct seen s = { 0 };
	struct ssb_error err = { 0 };
	struct errand_wish wish = { .run = say_hello, .after = write_mark };
	auto_fd cue = hold();

	begin_wish(&s, &wish);
	turn(100);
	errands_free(w->serve.errands);
	assert_int_equal(errands_new(&w->serve, &w->serve.errands, &err), 0);
	assert_int_equal(s.ended, 1);
	assert_int_equal(s.fate, ERRAND_CANCELED);
	assert_int_equal(flock(cue, LOCK_UN), 0);
	assert_true(marked());
	assert_true(waitpid(-1, NULL, 0) > 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(brings_bytes),
		T(brings_no_more_than_it_may),
		T(has_nothing_of_the_server),
		T(a_crash_is_an_error),
		T(too_long_is_an_error),
		T(canceled_leaves_nothing),
		T(outlives_the_connection),
		T(so_many_at_once),
		T(the_fewest_come_first),
		T(the_end_ends_all),
		T(dies_with_the_server),
		T(once_begun_it_is_finished),
		T(nobody_waits_for_what_follows),
		T(what_follows_outlives_the_server),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
