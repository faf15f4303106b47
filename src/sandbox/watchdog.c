/* watchdog.c - measures how much memory the sandbox uses, at the lowest cost that is safe.
 *
 * There are three steps. Each is taken only if the step before could not decide:
 * 1. bound: resident pages of all processes, and all shared memory files. Shared pages count once
 *    for each process. If the sum is below the limit, the limit is kept.
 * 2. shares: the proportional share of each process, separately for anonymous and shared memory.
 *    The cost grows with a process's pages and mappings, so the processes with the most pages are
 *    examined first. For processes that are not examined yet, their resident pages count. This ends
 *    when the sum is within the limit, or when the measured part alone exceeds it. The shared
 *    memory of the processes and the files may be the same memory: if the sum is too large even
 *    when the overlap is counted once, the limit is exceeded; if it is small enough when the
 *    overlap is counted twice, the limit is kept.
 * 3. overlap: the mappings of those files are found and subtracted. Before the skill is ended, a
 *    second measurement must confirm the result, because a fork between two reads makes the same
 *    pages count twice. While the number of processes changes between two measurements, more
 *    follow, up to MAX_LOOKS.
 *
 * Steps 2 and 3 have a time budget, which is enough for a pool of forked processes that share
 * gigabytes. If a skill makes the measurement slower than that (many mappings, many processes), the
 * resident pages of processes that were not measured in time count in full. So the limit can be
 * exceeded only for the time of the budget. If the time was spent waiting, as on a machine that
 * pauses, the measurement is repeated first. */
#include "sandbox/watchdog_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "base/own.h"
#include "os/budget.h"
#include "os/clock.h"

/* The time budget of steps 2 and 3 together. Measuring one process takes about 35 ms for each
 * resident GB, and up to 30 ms for mappings. EXACT_WALL_MS includes waiting for the processor and
 * for locks that the skill holds. */
#define EXACT_CPU_MS  1000
#define EXACT_WALL_MS 2000
#define MAX_LOOKS     5 /* measurements in one check while processes come and go */
/* how many decisions in a row may be postponed because the time was spent on waiting */
#define MAX_LATE     3
#define MAX_KCMP     1024 /* comparisons of address spaces per check */
#define LIVING_TRIES 4    /* attempts to find a live thread: threads may end meanwhile */

/* ---- texts and processes -------------------------------------------------- */

typedef void line_visit(struct watchdog *w, const char *line, void *arg);

/* Calls `visit` for every line of a text of any length, until the budget is used up (NULL: no
 * budget). A line that is too long for the buffer (a hostile path) is cut. Its rest is skipped, so
 * that it is never read as a line of its own. Returns -1 with errno if the text could not be read
 * to its end. */
static int each_line(struct watchdog *w, int fd, const struct budget *budget, line_visit *visit,
                     void *arg)
{
	char text[8192];
	size_t have = 0;
	bool skip = false;
	ssize_t n = fd < 0 ? -1 : 0;

	while (fd >= 0 && (budget == NULL || budget_left(budget)) &&
	       (n = read(fd, text + have, sizeof(text) - 1 - have)) > 0) {
		char *line = text;
		char *end;
		have += (size_t)n;
		while ((end = memchr(line, '\n', have - (size_t)(line - text))) != NULL) {
			*end = '\0';
			if (!skip) {
				visit(w, line, arg);
			}
			skip = false;
			line = end + 1;
		}
		have -= (size_t)(line - text);
		if (have > sizeof(text) / 2) {
			line[have] = '\0';
			if (!skip) {
				visit(w, line, arg);
			}
			skip = true;
			have = 0;
		}
		memmove(text, line, have);
	}
	return n < 0 ? -1 : 0;
}

static bool is_ours(const struct watchdog *w, pid_t pid)
{
	return pid == w->self || pid == w->anchors[0] || pid == w->anchors[1];
}

/* Visits every process of the sandbox except init itself. */
static int each_process(struct watchdog *w, watchdog_visit *visit, void *arg)
{
	auto_fd dir = openat(w->proc_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	int r = dir < 0 ? -1 : watchdog_each(w, dir, visit, arg);
	if (r < 0) {
		w->errors++;
		w->lost = errno;
	}
	return r;
}

/* A task through which an address space is examined, and its size in pages. */
struct holder {
	pid_t task;
	uint64_t size;
	uint64_t resident;
};

static bool is_holder(struct watchdog *w, pid_t task, struct holder *ret)
{
	char text[128];
	char *end;

	if (!watchdog_read(w, task, "statm", text, sizeof(text))) {
		watchdog_lost(w);
		return false;
	}
	uint64_t size = strtoull(text, &end, 10);
	if (size == 0) {
		return false; /* a task that has ended: its memory is freed, or the other threads
		                 still use it */
	}
	*ret = (struct holder){ task, size, strtoull(end, NULL, 10) };
	return true;
}

static bool visit_thread(struct watchdog *w, int dir_fd, int tid, void *arg)
{
	(void)dir_fd;
	return !is_holder(w, tid, arg);
}

/* Finds a live thread through which the memory of a process can be read. When the first thread has
 * ended, /proc/PID shows no memory, although the other threads still use it. Returns false if there
 * is none. */
static bool find_holder(struct watchdog *w, pid_t pid, struct holder *ret)
{
	struct holder h = { 0 };

	if (is_holder(w, pid, ret)) {
		return true;
	}
	for (int i = 0; i < LIVING_TRIES && h.task == 0 && watchdog_threaded(w, pid); i++) {
		auto_fd dir = watchdog_open(w, pid, "task", O_DIRECTORY);
		if (dir < 0 || watchdog_each(w, dir, visit_thread, &h) < 0) {
			watchdog_lost(w);
			return false;
		}
	}
	if (h.task == 0) {
		return false;
	}
	*ret = h;
	return true;
}

/* Returns the bytes that resident pages do not include: those of swapped pages and of page tables.
 * A page table takes the same space even if it maps only empty pages. */
static uint64_t beside_pages(const char *status)
{
	return (watchdog_field(status, "VmPTE:") + watchdog_field(status, "VmSwap:")) * 1024;
}

/* ---- step 1: bound -------------------------------------------------------- */

struct bound_sum {
	uint64_t bytes;
	uint64_t tasks;
};

static void note_tasks(struct watchdog *w, uint64_t tasks)
{
	w->tasks = tasks > w->tasks ? tasks : w->tasks;
}

/* Returns the number of threads that the process has beside its first. */
static uint64_t threads_beside(const char *status)
{
	uint64_t threads = watchdog_field(status, "Threads:");

	return threads > 0 ? threads - 1 : 0;
}

static bool visit_task(struct watchdog *w, int dir_fd, int pid, void *arg)
{
	uint64_t *tasks = arg;
	char text[WATCHDOG_STATUS_BYTES];

	(void)dir_fd;
	if (!is_ours(w, pid)) {
		*tasks += 1 + (watchdog_status(w, pid, text) ? threads_beside(text) : 0);
	}
	return true;
}

void watchdog_count(struct watchdog *w, uint64_t beside)
{
	uint64_t tasks = beside;

	(void)each_process(w, visit_task, &tasks);
	note_tasks(w, tasks);
}

static bool visit_bound(struct watchdog *w, int dir_fd, int pid, void *arg)
{
	struct bound_sum *sum = arg;
	char text[WATCHDOG_STATUS_BYTES];
	struct holder h = { .task = pid };

	(void)dir_fd;
	if (is_ours(w, pid)) {
		return true;
	}
	sum->tasks++;
	if (find_holder(w, pid, &h) && watchdog_status(w, h.task, text)) {
		sum->bytes += h.resident * w->page + beside_pages(text);
		sum->tasks += threads_beside(text);
	}
	watchdog_round_process(w, pid, w->threads || h.task != pid);
	return true;
}

/* The lists of System V objects in /proc. Two neighbouring columns of a list contain counts. An
 * object takes `object` bytes, plus `first` bytes for each unit of the first column, plus `second`
 * bytes for each unit of the second. */
static const struct sysv {
	const char *list;
	int column; /* index of the first of the two columns, from 0 */
	unsigned object, first, second;
} SYSV[] = {
	/* key shmid perms size cpid lpid nattch uid gid cuid cgid atime dtime ctime rss swap */
	{ "sysvipc/shm", 14, 0, 1, 1 },
	/* key semid perms nsems uid ...: each takes a cache line */
	{ "sysvipc/sem", 3, 256, 64, 0 },
	/* key msqid perms cbytes qnum ...: each message has a header */
	{ "sysvipc/msg", 3, 256, 1, 64 },
};

struct sysv_sum {
	const struct sysv *of;
	uint64_t bytes;
};

/* Adds the bytes of one object. The heading contains no numbers and adds nothing. */
static void sysv_line(struct watchdog *w, const char *line, void *arg)
{
	struct sysv_sum *sum = arg;
	uint64_t number = 0, before = 0;
	char *end;

	(void)w;
	for (int column = 0; column <= sum->of->column + 1; column++) {
		before = number;
		number = strtoull(line, &end, 10);
		if (end == line) {
			return;
		}
		line = end;
	}
	sum->bytes += sum->of->object + before * sum->of->first + number * sum->of->second;
}

static uint64_t sysv_bytes(struct watchdog *w)
{
	struct sysv_sum sum = { .bytes = 0 };

	for (size_t i = 0; i < ARRAY_LEN(SYSV); i++) {
		auto_fd list = openat(w->proc_fd, SYSV[i].list, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		sum.of = &SYSV[i];
		if (each_line(w, list, NULL, sysv_line, &sum) < 0) {
			watchdog_lost(w); /* not an error if the kernel has no System V IPC */
		}
	}
	return sum.bytes;
}

/* Returns an upper bound of the machine's shared memory: all of the used swap may be shared
 * memory. */
static uint64_t machine_shmem(void)
{
	struct sysinfo si;

	if (sysinfo(&si) < 0) {
		return 0;
	}
	return ((uint64_t)si.sharedram + si.totalswap - si.freeswap) * si.mem_unit;
}

/* Returns the bytes of all shared memory files (memfds, System V objects, the private tmpfs),
 * mapped or not. */
static uint64_t shared_files(struct watchdog *w)
{
	uint64_t sum = watchdog_memfd_bytes(w) + sysv_bytes(w);
	struct statfs fs;

	if (w->scratch_fd >= 0 && fstatfs(w->scratch_fd, &fs) != 0) {
		watchdog_lost(w);
	} else if (w->scratch_fd >= 0 && fs.f_blocks > fs.f_bfree) {
		sum += (uint64_t)(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize;
	}
	if (watchdog_memfd_blind(w)) {
		/* Some memfds are unknown. They could contain all the shared memory that the
		 * machine has gained since the start. */
		uint64_t now = machine_shmem();
		uint64_t more = now > w->shmem_start ? now - w->shmem_start : 0;
		sum = more > sum ? more : sum;
	}
	return sum;
}

/* ---- step 2: shares ------------------------------------------------------- */

struct shares {
	uint64_t anon;
	uint64_t shmem;
};

/* Returns the least memory that can be in use. The shared memory of the processes and that of the
 * files may be the same memory, so only the larger of the two counts. */
static uint64_t least_used(const struct shares *s, uint64_t files)
{
	return s->anon + (files > s->shmem ? files : s->shmem);
}

/* Adds the upper bounds of one process. Reading them needs no capability, but memory that processes
 * share counts in each of them. */
static bool visit_resident(struct watchdog *w, int dir_fd, int pid, void *arg)
{
	struct shares *s = arg;
	char text[WATCHDOG_STATUS_BYTES];
	struct holder h;

	(void)dir_fd;
	if (is_ours(w, pid) || !find_holder(w, pid, &h) || !watchdog_status(w, h.task, text)) {
		return true;
	}
	struct watchdog_mm mm = { .task = h.task, .size = h.size };
	mm.tables = watchdog_field(text, "VmPTE:") * 1024;
	mm.anon = (watchdog_field(text, "RssAnon:") + watchdog_field(text, "VmSwap:")) * 1024;
	mm.anon += mm.tables;
	mm.shmem = watchdog_field(text, "RssShmem:") * 1024;
	s->anon += mm.anon;
	s->shmem += mm.shmem;
	if (w->n_mm < WATCHDOG_MAX_MM) {
		w->mm[w->n_mm++] = mm;
	}
	return true;
}

/* Returns the largest process that was not measured yet, or NULL. */
static struct watchdog_mm *largest_resident(struct watchdog *w)
{
	struct watchdog_mm *most = NULL;

	for (unsigned i = 0; i < w->n_mm; i++) {
		struct watchdog_mm *mm = &w->mm[i];
		if (!mm->looked &&
		    (most == NULL || mm->anon + mm->shmem > most->anon + most->shmem)) {
			most = mm;
		}
	}
	return most;
}

/* Measures the proportional share of one process. If that fails (the process may have ended),
 * returns false and leaves the upper bounds in `mm` unchanged. */
static bool look_at_share(const struct watchdog *w, struct watchdog_mm *mm)
{
	char text[4096];

	mm->looked = true;
	if (!watchdog_read(w, mm->task, "smaps_rollup", text, sizeof(text))) {
		return false;
	}
	mm->anon = (watchdog_field(text, "Pss_Anon:") + watchdog_field(text, "SwapPss:")) * 1024;
	mm->anon += mm->tables;
	mm->shmem = watchdog_field(text, "Pss_Shmem:") * 1024;
	return true;
}

/* Replaces upper bounds by measured shares, until the sum is within the limit or certainly exceeds
 * it. */
static void look_at_shares(struct watchdog *w, uint64_t files, const struct budget *budget,
                           struct shares *s)
{
	struct shares sure = { 0 };
	struct watchdog_mm *mm;

	while (s->anon + s->shmem + files > w->limit && budget_left(budget) &&
	       (mm = largest_resident(w)) != NULL) {
		s->anon -= mm->anon;
		s->shmem -= mm->shmem;
		bool known = look_at_share(w, mm);
		s->anon += mm->anon;
		s->shmem += mm->shmem;
		sure.anon += known ? mm->anon : 0;
		sure.shmem += known ? mm->shmem : 0;
		if (least_used(&sure, files) > w->limit) {
			*s = sure;
			return;
		}
	}
}

/* Counts each address space only once: between vfork and exec, two processes share one, and /proc
 * shows all of it for both. Equal sizes are not enough, because a skill can make them equal; kcmp()
 * must confirm that the address space is the same. */
static void drop_same_mm(struct watchdog *w, struct shares *s)
{
	unsigned tries = 0;

	for (unsigned i = 1; i < w->n_mm; i++) {
		for (unsigned k = 0; k < i && tries < MAX_KCMP; k++) {
			if (w->mm[i].size != w->mm[k].size) {
				continue;
			}
			tries++;
			if (syscall(SYS_kcmp, w->mm[i].task, w->mm[k].task, KCMP_VM, 0, 0) == 0) {
				s->anon -= w->mm[i].anon;
				s->shmem -= w->mm[i].shmem;
				w->mm[i].anon = w->mm[i].shmem = 0;
				w->mm[i].looked = true;
				break;
			}
		}
	}
}

/* ---- step 3: overlap ------------------------------------------------------ */

struct overlap {
	uint64_t bytes;
	struct budget budget;
	bool ours;    /* the current mapping is of a shared file that shared_files() has counted */
	uint64_t pss; /* proportional share of the current mapping in kB */
};

/* True if shared_files() has counted the memory of this mapping. The line looks like this:
 * "55d0-55d1 rw-s 00000000 00:01 1234 /memfd:x (deleted)" */
static bool is_counted_file(const struct watchdog *w, const char *line)
{
	char *at;

	for (int i = 0; i < 3; i++) { /* skip three columns: addresses, permissions, offset */
		line += strcspn(line, " ");
		line += strspn(line, " ");
	}
	unsigned major_no = (unsigned)strtoul(line, &at, 16);
	if (*at != ':') {
		return false;
	}
	unsigned minor_no = (unsigned)strtoul(at + 1, &at, 16);
	uint64_t ino = strtoull(at, &at, 10);
	uint64_t dev = (uint64_t)makedev(major_no, minor_no);
	const char *path = at + strspn(at, " ");
	if (dev == 0) {
		return false; /* not a file */
	}
	/* A System V segment has its id in place of the inode; the first id is 0. */
	return dev == w->scratch_dev || watchdog_knows_file(w, dev, ino) ||
	       (dev == w->shm_dev && strncmp(path, "/SYSV", 5) == 0);
}

static void overlap_line(struct watchdog *w, const char *line, void *arg)
{
	struct overlap *o = arg;

	if (line[0] < 'A' || line[0] > 'Z') { /* a new mapping: its line begins with an address,
		                                 lines of fields with a capital letter */
		o->ours = is_counted_file(w, line);
		o->pss = 0;
	} else if (o->ours && strncmp(line, "Pss:", 4) == 0) {
		o->pss = strtoull(line + 4, NULL, 10);
	} else if (o->ours && strncmp(line, "Anonymous:", 10) == 0) {
		/* Do not subtract private copies of the file's pages: they were counted as
		 * anonymous memory. */
		uint64_t anon = strtoull(line + 10, NULL, 10);
		o->bytes += o->pss > anon ? (o->pss - anon) * 1024 : 0;
	}
}

static bool visit_overlap(struct watchdog *w, int dir_fd, int pid, void *arg)
{
	struct overlap *o = arg;
	struct holder h;

	(void)dir_fd;
	if (is_ours(w, pid) || !find_holder(w, pid, &h)) {
		return true;
	}
	auto_fd fd = watchdog_open(w, h.task, "smaps", 0);
	o->ours = false;
	/* if reading fails, o->bytes is smaller, and less is subtracted from the sum */
	(void)each_line(w, fd, &o->budget, overlap_line, o);
	return true;
}

/* ---- the verdict ---------------------------------------------------------- */

static uint64_t measure_exactly(struct watchdog *w, uint64_t files, const struct budget *budget)
{
	struct shares s = { 0 };

	w->n_mm = 0;
	(void)each_process(w, visit_resident, &s);
	if (s.anon + s.shmem + files > w->limit) {
		drop_same_mm(w, &s);
		look_at_shares(w, files, budget, &s);
	}
	uint64_t least = least_used(&s, files);
	uint64_t most = s.anon + s.shmem + files;
	if (least > w->limit || most <= w->limit) {
		return least > w->limit ? least : most;
	}
	struct overlap o = { .budget = *budget };
	(void)each_process(w, visit_overlap, &o);
	/* The result is never less than `least`, even if the processes changed meanwhile. */
	return most - least > o.bytes ? most - o.bytes : least;
}

static unsigned next_look(const struct watchdog *w, uint64_t used, uint64_t spent_ms)
{
	uint64_t ms = used < w->limit ? (w->limit - used) / WATCHDOG_BYTES_PER_MS : 0;

	if (w->round_open) {
		ms = 0;
	}
	if (ms < 3 * spent_ms) {
		ms = 3 * spent_ms; /* so checks use at most a quarter of a CPU, unless
		                      WATCHDOG_MAX_MS shortens the wait */
	}
	if (ms < WATCHDOG_MIN_MS) {
		ms = WATCHDOG_MIN_MS;
	}
	return (unsigned)(ms > WATCHDOG_MAX_MS ? WATCHDOG_MAX_MS : ms);
}

void watchdog_init(struct watchdog *w, uint64_t limit_bytes, int proc_fd, int scratch_fd)
{
	struct stat st;

	/* Do not touch the two large arrays (`files`, `mm`): that would cost more than all the
	 * rest. */
	memset(w, 0, offsetof(struct watchdog, files));
	w->limit = limit_bytes;
	w->proc_fd = proc_fd;
	w->scratch_fd = scratch_fd;
	w->self = getpid();
	w->page = (uint64_t)sysconf(_SC_PAGESIZE);
	if (proc_fd < 0) {
		return; /* there is a control group, so the watchdog is not used */
	}
	if (scratch_fd >= 0 && fstat(scratch_fd, &st) == 0) {
		w->scratch_dev = (uint64_t)st.st_dev;
	}
	w->shmem_start = machine_shmem();
	auto_fd memfd = memfd_create("probe", MFD_CLOEXEC);
	if (memfd >= 0 && fstat(memfd, &st) == 0) {
		w->shm_dev = (uint64_t)st.st_dev;
	}
}

/* True if the decision must be postponed: the time budget is used up, but the time was spent on
 * waiting and not on measuring. */
static bool came_late(struct watchdog *w, const struct budget *budget)
{
	bool waited = !budget_left(budget) && clock_cpu_us() < budget->cpu_us;

	w->late = waited ? w->late + 1 : 0;
	return waited && w->late < MAX_LATE;
}

int watchdog_check(struct watchdog *w, uint64_t *ret_used, unsigned *ret_next_ms)
{
	uint64_t start = clock_ms();
	struct bound_sum bound = { 0 };

	/* A thread with its own fd table can hide only shared memory. So as long as the last bound
	 * and all shared memory of the machine are together within the limit, single threads need
	 * not be examined. */
	w->threads = w->bound + machine_shmem() > w->limit;
	w->lost = 0;
	watchdog_round_begin(w);
	(void)each_process(w, visit_bound, &bound);
	watchdog_round_end(w);
	uint64_t files = shared_files(w);
	uint64_t used = bound.bytes + files;
	note_tasks(w, bound.tasks);
	w->bound = used;
	struct budget budget = budget_new(EXACT_CPU_MS, EXACT_WALL_MS);
	unsigned before = 0;
	for (int look = 0; used > w->limit && look < MAX_LOOKS; look++) {
		if (look >= 2 && w->n_mm == before) {
			break;
		}
		before = w->n_mm;
		used = measure_exactly(w, files, &budget);
	}
	if (used <= w->limit) {
		w->late = 0;
	} else if (came_late(w, &budget)) {
		used = w->limit;
	}
	*ret_used = used;
	*ret_next_ms = next_look(w, used, clock_ms() - start);
	if (w->lost != 0 && used <= w->limit) {
		errno = w->lost;
		return -1;
	}
	return used > w->limit;
}
