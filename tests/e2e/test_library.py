"""libskillsandbox: what it exports, what it loads, and the C example."""
import re
import subprocess

import harness

SRC = harness.BUILD / "src"


def tool(*argv):
    return subprocess.run([str(a) for a in argv], capture_output=True, text=True, timeout=60,
                          check=True).stdout


def shared_library():
    found = [p for p in SRC.glob("libskillsandbox.so*") if p.is_file() and not p.is_symlink()]
    assert found, "the shared library is not built"
    return found[0]


def test_exports_only_ssb():
    lines = tool("nm", "-D", "--defined-only", shared_library()).splitlines()
    names = [line.split()[-1].split("@")[0] for line in lines]
    assert "ssb_run" in names
    assert [n for n in names if not n.startswith("ssb_") and n != "SKILLSANDBOX_0"] == []


def test_every_public_call_is_exported():
    header = (harness.REPO / "include/skillsandbox.h").read_text()
    declared = set(re.findall(r"^SSB_API [^;(]*?\b(ssb_[a-z_]+)\(", header, re.M))
    assert len(declared) > 15
    lines = tool("nm", "-D", "--defined-only", shared_library()).splitlines()
    assert declared - {line.split()[-1].split("@")[0] for line in lines} == set()


def test_header_stands_alone(tmp_path):
    for compiler, std in (("gcc", "-std=c99"), ("g++", "-std=c++17")):
        source = tmp_path / ("x.c" if compiler == "gcc" else "x.cc")
        source.write_text('#include "skillsandbox.h"\nint main(void) { return 0; }\n')
        subprocess.run([compiler, std, "-Wall", "-Wextra", "-Werror", "-I",
                        harness.REPO / "include", "-c", source, "-o", tmp_path / "x.o"],
                       check=True, timeout=60)


def test_executable_needs_libc_only():
    needed = [line.split("[")[1].rstrip("]") for line in
              tool("readelf", "-d", SRC / "skillsandbox").splitlines() if "(NEEDED)" in line]
    assert set(needed) <= {"libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


def test_executable_is_hardened():
    dynamic = tool("readelf", "-d", SRC / "skillsandbox")
    assert "BIND_NOW" in dynamic or "NOW" in dynamic
    assert "GNU_RELRO" in tool("readelf", "-lW", SRC / "skillsandbox")
    assert "DYN" in tool("readelf", "-h", SRC / "skillsandbox")


def example_source():
    found = sorted((harness.REPO / "examples").rglob("*.c"))
    assert found, "no C example"
    return found[0]


def test_c_example_builds_and_runs(ssb):
    """The C example builds and runs with the static library and with the shared one."""
    source = example_source()
    skill = ssb.skill("print('through the library')")
    archive = next(SRC.glob("libskillsandbox.a"))
    out = ssb.mkdir("example")
    for name, link in (("static", [archive, "-lyaml", "-lsodium"]),
                       ("shared", [shared_library(), f"-Wl,-rpath,{out}"])):
        target = out / name
        subprocess.run(["gcc", "-std=gnu17", "-Wall", "-Wextra", "-Werror", "-I",
                        harness.REPO / "include", source, *link, "-o", target], check=True,
                       timeout=60)
        target.chmod(0o755)
        library = shared_library()
        for alias in {library.name, "libskillsandbox.so.0", "libskillsandbox.so"}:
            copy = out / alias
            copy.write_bytes(library.read_bytes())
            copy.chmod(0o755)
        r = ssb.as_caller([target, skill])
        assert r.code == 0, repr(r)
        assert "through the library" in r.text


def build_example(ssb):
    out = ssb.mkdir("example")
    subprocess.run(["gcc", "-std=gnu17", "-Wall", "-Wextra", "-Werror", "-I",
                    harness.REPO / "include", example_source(), SRC / "libskillsandbox.a", "-lyaml",
                    "-lsodium", "-o", out / "run_skill"], check=True, timeout=60)
    return out / "run_skill"


TRIES = """
import os, socket
for attempt in (lambda: open(os.path.expanduser("~/.ssh/id_rsa")),
                lambda: socket.getaddrinfo("api.example", 443)):
    try:
        attempt()
    except OSError:
        pass
print("done")
"""


def test_c_example_says_what_was_denied(ssb):
    """The C example prints what was denied, the reason and the remedy. Control: a skill that tries
    nothing."""
    program = build_example(ssb)
    r = ssb.as_caller([program, ssb.skill(TRIES)])
    assert r.ok().text == "done\n"
    denied = [line for line in r.errors.splitlines() if line.startswith("denied: ")]
    assert any("/.ssh" in line and line.endswith("[credential_store]") for line in denied), repr(r)
    assert any(line.endswith("[not_declared]") for line in denied), repr(r)
    assert "  to allow it: --net " in r.errors, repr(r)
    r = ssb.as_caller([program, ssb.skill("print('done')")])
    assert r.ok().text == "done\n" and "denied: " not in r.errors, repr(r)


DENIALS = r"""
#include <skillsandbox.h>
#include <stdio.h>
#include <string.h>

static void print_state(const char *of, const struct ssb_result *result)
{
	struct ssb_denials *d = NULL;
	struct ssb_error err = { 0 };
	if (ssb_denials_read(result, &d, &err) != 0) {
		printf("%s: code %d, list %s\n", of, err.code, d == NULL ? "untouched" : "set");
		return;
	}
	const struct ssb_denial *first = ssb_denials_get(d, 0);
	printf("%s: %zu, complete %d, past the end %s, %s\n", of, ssb_denials_count(d),
	       ssb_denials_complete(d), ssb_denials_get(d, ssb_denials_count(d)) ? "?" : "none",
	       first != NULL ? first->kind : "-");
	for (size_t i = 0; i < ssb_denials_count(d); i++) {
		const struct ssb_denial *x = ssb_denials_get(d, i);
		printf("  %s|%s|%s|%s|%llu|%d|%d\n", x->what, x->reason, x->remedy, x->why,
		       (unsigned long long)x->count, x->violation, x->prevented);
	}
	ssb_denials_free(d);
}

int main(int argc, char **argv)
{
	const int streams[3] = { -1, -1, -1 };
	const char *audit[] = { "full", "off" };
	struct ssb_result result[2] = { 0 };
	(void)argc;
	for (int i = 0; i < 2; i++) {
		struct ssb_error err = { 0 };
		struct ssb_plan *plan = NULL;
		struct ssb_options *o = ssb_options_new();
		if (ssb_options_set(o, SSB_OPT_AUDIT, audit[i], &err) != 0 ||
		    ssb_plan_command(o, argv + 1, &plan, NULL, &err) != 0 ||
		    ssb_run(plan, streams, &result[i], &err) != 0) {
			printf("%s: %s\n", err.where, err.text);
			return 1;
		}
		print_state(audit[i], &result[i]);
		ssb_plan_free(plan);
		ssb_options_free(o);
	}
	memcpy(result[0].run_id, result[1].run_id, sizeof(result[0].run_id));
	print_state("another run", &result[0]);
	snprintf(result[0].trace_path, sizeof(result[0].trace_path), "/nowhere/trace.json");
	print_state("removed", &result[0]);
	print_state("no run", &(struct ssb_result){ 0 });
	ssb_denials_free(NULL);
	return ssb_denials_count(NULL) == 0 ? 0 : 1;
}
"""


def test_denials_of_a_run(ssb):
    """The list of denials that the library returns is complete, or says that it is not. If the
    record belongs to another run or cannot be read, the call fails."""
    tries = "cat ~/.ssh/id_rsa ~/.ssh/id_rsa; exit 0"
    out = ssb.as_caller([host(ssb, DENIALS), "sh", "-c", tries], timeout=60).ok().text
    lines = out.splitlines()
    assert lines[0] == "full: 1, complete 1, past the end none, file_blocked", out
    what, reason, remedy, why, count, violation, prevented = lines[1].split("|")
    assert what.startswith("  read ") and ".ssh" in what and reason == "credential_store", out
    assert "--read" in remedy and "credentials" in why, out
    assert (int(count), violation, prevented) == (2, "1", "1"), out
    assert lines[2:] == ["off: 0, complete 0, past the end none, -",
                         "another run: code 6, list untouched",
                         "removed: code 6, list untouched",
                         "no run: code 1, list untouched"], out


# A host program whose timer interrupts every waiting system call.
ALARMED = r"""
#include <dirent.h>
#include <signal.h>
#include <skillsandbox.h>
#include <stdio.h>
#include <sys/time.h>
#include <sys/wait.h>

static void tick(int sig) { (void)sig; }

static int fds(void)
{
	int n = 0;
	DIR *d = opendir("/proc/self/fd");
	while (readdir(d) != NULL) { n++; }
	closedir(d);
	return n;
}

int main(int argc, char **argv)
{
	const int streams[3] = { -1, -1, -1 };
	struct sigaction on = { .sa_handler = tick };
	struct ssb_result result;
	int left = 0, ran = 0, before = fds();
	(void)argc;
	sigaction(SIGALRM, &on, NULL);
	setitimer(ITIMER_REAL, &(struct itimerval){ { 0, 300 }, { 0, 300 } }, NULL);
	for (int i = 0; i < 40; i++) {
		struct ssb_error err = { 0 };
		struct ssb_plan *plan = NULL;
		struct ssb_options *o = ssb_options_new();
		if (ssb_plan_command(o, argv + 1, &plan, NULL, &err) == 0 &&
		    ssb_run(plan, streams, &result, &err) == 0) {
			ran += result.exit_status == 7;
		} else {
			fprintf(stderr, "%s: %s\n", err.where, err.text);
		}
		left += waitpid(-1, NULL, WNOHANG) >= 0;
		ssb_plan_free(plan);
		ssb_options_free(o);
	}
	printf("ran %d, processes left %d, fds left %d\n", ran, left, fds() - before);
	return 0;
}
"""


def host(ssb, text):
    out = ssb.mkdir("host")
    (out / "x.c").write_text(text)
    subprocess.run(["gcc", "-std=gnu17", "-Wall", "-Werror", "-I", harness.REPO / "include",
                    out / "x.c", SRC / "libskillsandbox.a", "-lyaml", "-lsodium", "-o",
                    out / "x"],
                   check=True, timeout=60)
    return out / "x"


def test_host_that_is_interrupted(ssb):
    """Forty runs in one process whose timer interrupts every wait: all succeed, and no process or
    fd is left."""
    r = ssb.as_caller([host(ssb, ALARMED), "sh", "-c", "exit 7"], timeout=120)
    assert r.text == "ran 40, processes left 0, fds left 0\n", repr(r)


WATCHED = r"""
#include <skillsandbox.h>
#include <stdio.h>
#include <unistd.h>

static void on_record(void *arg, int record)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", record);
	*(FILE **)arg = fopen(path, "re");
}

int main(int argc, char **argv)
{
	const int streams[3] = { -1, -1, -1 };
	struct ssb_error err = { 0 };
	struct ssb_result result = { 0 };
	struct ssb_plan *plan = NULL;
	struct ssb_options *o = ssb_options_new();
	FILE *record = NULL;
	const struct ssb_watch watch = { on_record, &record };
	char line[8192] = "";
	(void)argc;
	if (ssb_plan_command(o, argv + 1, &plan, NULL, &err) != 0) {
		return 2;
	}
	int failed = ssb_run_watched(plan, NULL, streams, &watch, &result, &err);
	int read = record != NULL && fgets(line, sizeof(line), record) != NULL;
	printf("ran %d %d, read %d, %.8s\n", failed, result.exit_status, read, line);
	/* No such session: the skill is not run, and on_record() is not called. */
	record = NULL;
	failed = ssb_run_watched(plan, "none", streams, &watch, &result, &err);
	printf("then %d, followed %d\n", failed, record != NULL);
	ssb_plan_free(plan);
	ssb_options_free(o);
	return 0;
}
"""


def test_host_that_follows_the_record(ssb):
    r = ssb.as_caller([host(ssb, WATCHED), "sh", "-c", "exit 7"])
    assert r.text.startswith("ran 0 7, read 1, {"), repr(r)
    assert r.text.endswith("then -1, followed 0\n"), repr(r)


BOUNDED = r"""
#include <skillsandbox.h>
#include <stdio.h>
#include <sys/resource.h>

int main(int argc, char **argv)
{
	const int streams[3] = { -1, -1, -1 };
	struct ssb_error err = { 0 };
	struct ssb_result result = { 0 };
	struct ssb_plan *plan = NULL;
	struct ssb_options *o = ssb_options_new();
	(void)argc;
	int planned = ssb_plan_command(o, argv + 1, &plan, NULL, &err);
	setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 10, RLIM_INFINITY });
	int bounded = ssb_run(plan, streams, &result, &err);
	setrlimit(RLIMIT_FSIZE, &(struct rlimit){ RLIM_INFINITY, RLIM_INFINITY });
	printf("planned %d, bounded %d, %s\n", planned, bounded, err.text);
	err = (struct ssb_error){ 0 };
	printf("then %d\n", ssb_run(plan, streams, &result, &err));
	return 0;
}
"""


def test_host_whose_files_may_not_grow(ssb):
    """The record cannot be written: the run fails with an error, and the host program continues."""
    r = ssb.as_caller([host(ssb, BOUNDED), "true"], timeout=60)
    first, then = r.ok().text.splitlines()
    assert first.startswith("planned 0, bounded -1, ") and "File too large" in first, first
    assert then == "then 0"


# The counter is in shared memory, so it counts how often the handler is called in all processes
# together.
HANDLES = r"""
#include <signal.h>
#include <skillsandbox.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int *hits;

static void hit(int sig)
{
	(void)sig;
	(*hits)++;
	(void)!chdir("/"); /* init and egress would be killed by their filters */
}

int main(int argc, char **argv)
{
	const int streams[3] = { -1, 1, -1 };
	struct ssb_error err = { 0 };
	struct ssb_result result = { 0 };
	struct ssb_plan *plan = NULL;
	struct ssb_options *o = ssb_options_new();
	(void)argc;
	hits = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	setpgid(0, 0);
	signal(SIGUSR1, hit);
	pid_t helper = fork();
	if (helper == 0) {
		signal(SIGUSR1, SIG_IGN);
		usleep(500000);
		kill(0, SIGUSR1);
		_exit(0);
	}
	if (ssb_options_set(o, SSB_OPT_NET, "api.example", &err) != 0 ||
	    ssb_plan_command(o, argv + 1, &plan, NULL, &err) != 0 ||
	    ssb_run(plan, streams, &result, &err) != 0) {
		printf("%s: %s\n", err.where, err.text);
	}
	waitpid(helper, NULL, 0);
	printf("exit %d, %d hits, %zu violations\n", result.exit_status, *hits,
	       result.violations);
	ssb_plan_free(plan);
	ssb_options_free(o);
	return 0;
}
"""


def test_handlers_of_the_host_are_its_own(ssb):
    """A signal to the host program's process group also reaches init and the egress process. They
    must not call the host program's signal handler."""
    r = ssb.as_caller([host(ssb, HANDLES), "sh", "-c", "sleep 1.5; exit 7"], timeout=60)
    assert r.text == "exit 7, 1 hits, 0 violations\n", repr(r)


# A host program that reaps every child that ends, as servers do, and then starts a process that
# gets the pid of the reaped child.
REAPS = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <skillsandbox.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t others[64];
static int n;

static void reap(int sig)
{
	char text[16];
	int saved = errno, status;
	pid_t gone;
	(void)sig;
	while (n < 64 && (gone = waitpid(-1, &status, WNOHANG)) > 0) {
		int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
		snprintf(text, sizeof(text), "%d", gone - 1);
		(void)!write(fd, text, strlen(text));
		pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); /* takes no lock */
		if (pid == 0) {
			signal(SIGCHLD, SIG_DFL);
			close_range(0, ~0U, 0);
			for (;;) { pause(); }
		}
		if (pid == gone) { others[n++] = pid; }
		close(fd);
	}
	errno = saved;
}

int main(int argc, char **argv)
{
	const int streams[3] = { -1, 1, -1 };
	struct ssb_error err = { 0 };
	struct ssb_result result = { 0 };
	struct ssb_plan *plan = NULL;
	struct ssb_options *o = ssb_options_new();
	int ended = 0;
	(void)argc;
	signal(SIGCHLD, reap);
	if (ssb_options_set(o, SSB_OPT_NET, "api.example", &err) != 0 ||
	    ssb_plan_command(o, argv + 1, &plan, NULL, &err) != 0) {
		printf("%s: %s\n", err.where, err.text);
	}
	for (int i = 0; i < 20 && err.code == SSB_OK; i++) {
		if (ssb_run(plan, streams, &result, &err) != 0 || result.exit_status != 7) {
			printf("exit %d, %s: %s\n", result.exit_status, err.where, err.text);
		}
	}
	signal(SIGCHLD, SIG_DFL);
	for (int i = 0; i < n; i++) {
		ended += waitpid(others[i], NULL, WNOHANG) != 0;
		kill(others[i], SIGKILL);
	}
	printf("took a number: %s, ended: %d\n", n > 0 ? "yes" : "no", ended);
	return 0;
}
"""


def test_host_that_reaps_by_itself(root):
    """The host has reaped a process of the library, and another process has its pid: the library
    must not end that process."""
    in_ns = ["unshare", "--pid", "--fork", "--mount-proc"]
    r = root.as_caller([*in_ns, host(root, REAPS), "sh", "-c", "exit 7"], timeout=30)
    assert r.text == "took a number: yes, ended: 0\n", repr(r)


def test_pkg_config_names_all_that_is_needed(ssb, tmp_path):
    """A program links with the installed library and exactly the flags that pkg-config prints."""
    env = {"PATH": harness.PATH, "DESTDIR": str(tmp_path), "HOME": str(tmp_path)}
    subprocess.run(["meson", "install", "-C", harness.BUILD, "--no-rebuild", "--quiet"], env=env,
                   check=True, timeout=120)
    pc = next(tmp_path.rglob("pkgconfig/skillsandbox.pc"))
    assert ".a" not in pc.read_text(), "the path of a file of the machine that built it"
    skill = ssb.skill("print('by pkg-config')")
    out = ssb.mkdir("example")

    def flags(*kind):
        where = {"PATH": harness.PATH, "PKG_CONFIG_PATH": str(pc.parent),
                 "PKG_CONFIG_SYSROOT_DIR": str(tmp_path)}
        return subprocess.run(["pkg-config", "--cflags", "--libs", *kind, "skillsandbox"],
                              env=where, capture_output=True, text=True, timeout=60,
                              check=True).stdout.split()

    def build(target, words):
        return subprocess.run(["gcc", "-std=gnu17", example_source(), *words, "-o", out / target],
                              timeout=60, capture_output=True).returncode

    for library in pc.parent.parent.glob("libskillsandbox.so*"):
        (out / library.name).write_bytes(library.read_bytes())
    assert build("shared", [*flags(), f"-Wl,-rpath,{out}"]) == 0
    static = ["-l:libskillsandbox.a" if w == "-lskillsandbox" else w for w in flags("--static")]
    assert build("static", static) == 0
    for archive in ("-lyaml", "-lsodium"):
        assert build("control", [w for w in static if w != archive]) != 0
    for name in ("shared", "static"):
        r = ssb.as_caller([out / name, skill])
        assert r.code == 0 and "by pkg-config" in r.text, repr(r)


def test_c_example_is_short():
    assert len(example_source().read_text().splitlines()) <= 60


def test_install(tmp_path):
    env = {"PATH": harness.PATH, "DESTDIR": str(tmp_path), "HOME": str(tmp_path)}
    subprocess.run(["meson", "install", "-C", harness.BUILD, "--no-rebuild", "--quiet"], env=env,
                   check=True, timeout=120)
    files = {p.name for p in tmp_path.rglob("*") if p.is_file() or p.is_symlink()}
    for name in ("skillsandbox", "skillsandbox.h", "libskillsandbox.so", "libskillsandbox.a",
                 "skillsandbox.1", "skillsandbox.3", "skillsandbox-manifest.5",
                 "skillsandbox-policy.5"):
        assert name in files or f"{name}.gz" in files, name
    installed = next(p for p in tmp_path.rglob("bin/skillsandbox"))
    assert "0." in tool(installed, "--version")


def test_completions_are_installed(tmp_path):
    env = {"PATH": harness.PATH, "DESTDIR": str(tmp_path), "HOME": str(tmp_path)}
    subprocess.run(["meson", "install", "-C", harness.BUILD, "--no-rebuild", "--quiet"], env=env,
                   check=True, timeout=120)
    paths = [str(p) for p in tmp_path.rglob("*")]
    for place in ("bash-completion", "zsh", "fish"):
        assert [p for p in paths if place in p and "skillsandbox" in p.rsplit("/", 1)[1]], place
