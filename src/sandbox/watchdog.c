/* watchdog.c - how much memory the sandbox holds, as cheaply as is safe.
 *
 * Three steps, each only where the one before could not settle it:
 *  1. bound: resident pages of all processes, and all shared memory files.
 *     Counts shared pages many times. Below the limit: fine.
 *  2. shares: the proportional share of each process, anonymous and shared
 *     memory apart. The look costs as much as a process has pages and mappings, so the
 *     processes with the most are looked at first, and what the others have
 *     resident stands for their shares, until the sum fits or what is
 *     certain is past the limit. The shared part overlaps with the files to an
 *     unknown degree: if the smaller sum is past the limit, it is; if the larger
 *     is not, all is fine.
 *  3. overlap: the mappings of those files are found and taken off.
 * A verdict against the skill is confirmed by a second measurement, since a
 * fork between two looks makes the same pages appear twice.
 *
 * Steps 2 and 3 have a budget of time, which a pool of forks that share gigabytes
 * does not use up. A skill that makes the looks so slow that they do (many
 * mappings, many processes) is judged by what it has resident: what cannot be
 * measured in time counts in full. So the limit can be passed for that time, no longer.
 * Where the time went by in waiting, as on a machine that pauses, it is tried again first. */
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

/* For steps 2 and 3, both times. A look takes about 35 ms for each GB that is resident, and
 * up to 30 ms for mappings. Waiting for the processor and for a skill's locks is in the second. */
#define EXACT_CPU_MS  1000
#define EXACT_WALL_MS 2000
#define MAX_LATE      3    /* measurements in a row that waiting may cut short */
#define MAX_KCMP      1024 /* comparisons of address spaces per check */
#define LIVING_TRIES  4    /* threads may end while one looks for one that lives */

/* ---- texts and processes -------------------------------------------------- */

typedef void line_visit(struct watchdog *w, const char *line, void *arg);

/* Every line of a text of any length, as far as the budget goes (NULL: all of it); only the
 * beginning of one that does not fit (a hostile path), so that its end is never taken for a line.
 * -1, with errno: the text could not be read to its end. */
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

/* Every process of the sandbox but init itself. */
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

/* Through whom an address space is looked at, and how much it is, in pages. */
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
		return false; /* a zombie: its memory is gone, or with its other threads */
	}
	*ret = (struct holder){ task, size, strtoull(end, NULL, 10) };
	return true;
}

static bool visit_thread(struct watchdog *w, int dir_fd, int tid, void *arg)
{
	(void)dir_fd;
	return !is_holder(w, tid, arg);
}

/* Once the first thread has ended, /proc/PID shows no memory, while the others
 * have it still: any of them that lives will do. */
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

/* In no count of resident pages: what is in swap, and the page tables, which take the same
 * for pages with nothing in them. */
static uint64_t beside_pages(const char *status)
{
	return (watchdog_field(status, "VmPTE:") + watchdog_field(status, "VmSwap:")) * 1024;
}

/* ---- step 1: bound -------------------------------------------------------- */

static bool visit_bound(struct watchdog *w, int dir_fd, int pid, void *arg)
{
	uint64_t *sum = arg;
	char text[WATCHDOG_STATUS_BYTES];
	struct holder h = { .task = pid };

	(void)dir_fd;
	if (pid == w->self) {
		return true;
	}
	if (find_holder(w, pid, &h) && watchdog_status(w, h.task, text)) {
		*sum += h.resident * w->page + beside_pages(text);
	}
	watchdog_round_process(w, pid, w->threads || h.task != pid);
	return true;
}

/* What the namespace of System V holds, by the lists of it: the bytes of one object, and of each
 * unit that two neighbouring columns have. */
static const struct sysv {
	const char *list;
	int column; /* of the first number; from 0 */
	unsigned object, first, second;
} SYSV[] = {
	/* key shmid perms size cpid lpid nattch uid gid cuid cgid atime dtime ctime rss swap */
	{ "sysvipc/shm", 14, 0, 1, 1 },
	/* key semid perms nsems uid ...: each has a line of the cache */
	{ "sysvipc/sem", 3, 256, 64, 0 },
	/* key msqid perms cbytes qnum ...: a message has a head */
	{ "sysvipc/msg", 3, 256, 1, 64 },
};

struct sysv_sum {
	const struct sysv *of;
	uint64_t bytes;
};

/* The heading has no numbers and adds nothing. */
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
			watchdog_lost(w); /* but for a kernel that has none of it */
		}
	}
	return sum.bytes;
}

/* All shared memory of the machine, as far as one can tell: what is in swap
 * may be it. */
static uint64_t machine_shmem(void)
{
	struct sysinfo si;

	if (sysinfo(&si) < 0) {
		return 0;
	}
	return ((uint64_t)si.sharedram + si.totalswap - si.freeswap) * si.mem_unit;
}

/* What exists whether anybody maps it or not. */
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
		/* What the machine has more than at the beginning could be there. */
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

/* The files may be what is shared. */
static uint64_t least_used(const struct shares *s, uint64_t files)
{
	return s->anon + (files > s->shmem ? files : s->shmem);
}

/* Upper bounds, for everybody to read: what is shared counts for each. */
static bool visit_resident(struct watchdog *w, int dir_fd, int pid, void *arg)
{
	struct shares *s = arg;
	char text[WATCHDOG_STATUS_BYTES];
	struct holder h;

	(void)dir_fd;
	if (pid == w->self || !find_holder(w, pid, &h) || !watchdog_status(w, h.task, text)) {
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

/* The one with the most of those that were not looked at; NULL: none. */
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

/* False: the look failed (the process has ended, say), and the upper bound stays. */
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

/* From the sum of upper bounds to that of shares, as far as it matters. */
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

/* Between vfork and exec two processes are one address space, and each shows
 * all of it. Only the kernel's word counts here: equal figures can be made. */
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
	bool ours;    /* the present mapping is of a file that is counted as a file */
	uint64_t pss; /* of it, kB */
};

/* "55d0-55d1 rw-s 00000000 00:01 1234  /memfd:x (deleted)" */
static bool is_counted_file(const struct watchdog *w, const char *line)
{
	char *at;

	for (int i = 0; i < 3; i++) { /* addresses, rights, offset */
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
		return false; /* no file at all */
	}
	/* The number of a segment stands for its inode, and the first is 0. */
	return dev == w->scratch_dev || watchdog_knows_file(w, dev, ino) ||
	       (dev == w->shm_dev && strncmp(path, "/SYSV", 5) == 0);
}

static void overlap_line(struct watchdog *w, const char *line, void *arg)
{
	struct overlap *o = arg;

	if (line[0] < 'A' || line[0] > 'Z') { /* fields begin with a capital */
		o->ours = is_counted_file(w, line);
		o->pss = 0;
	} else if (o->ours && strncmp(line, "Pss:", 4) == 0) {
		o->pss = strtoull(line + 4, NULL, 10);
	} else if (o->ours && strncmp(line, "Anonymous:", 10) == 0) {
		/* Private copies of its pages were counted as anonymous. */
		uint64_t anon = strtoull(line + 10, NULL, 10);
		o->bytes += o->pss > anon ? (o->pss - anon) * 1024 : 0;
	}
}

static bool visit_overlap(struct watchdog *w, int dir_fd, int pid, void *arg)
{
	struct overlap *o = arg;
	struct holder h;

	(void)dir_fd;
	if (pid == w->self || !find_holder(w, pid, &h)) {
		return true;
	}
	auto_fd fd = watchdog_open(w, h.task, "smaps", 0);
	o->ours = false;
	(void)each_line(w, fd, &o->budget, overlap_line, o); /* what is not taken off counts */
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
	/* Never less than what is certain, whatever changed in between. */
	return most - least > o.bytes ? most - o.bytes : least;
}

static unsigned next_look(const struct watchdog *w, uint64_t used, uint64_t spent_ms)
{
	uint64_t ms = used < w->limit ? (w->limit - used) / WATCHDOG_BYTES_PER_MS : 0;

	if (w->round_open) {
		ms = 0;
	}
	if (ms < 3 * spent_ms) {
		ms = 3 * spent_ms; /* a quarter of a CPU for the watching, if looks are quick */
	}
	if (ms < WATCHDOG_MIN_MS) {
		ms = WATCHDOG_MIN_MS;
	}
	return (unsigned)(ms > WATCHDOG_MAX_MS ? WATCHDOG_MAX_MS : ms);
}

void watchdog_init(struct watchdog *w, uint64_t limit_bytes, int proc_fd, int scratch_fd)
{
	struct stat st;

	/* Not the tables: to touch them costs more than all the rest. */
	memset(w, 0, offsetof(struct watchdog, files));
	w->limit = limit_bytes;
	w->proc_fd = proc_fd;
	w->scratch_fd = scratch_fd;
	w->self = getpid();
	w->page = (uint64_t)sysconf(_SC_PAGESIZE);
	if (proc_fd < 0) {
		return; /* not used: there is a control group */
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

/* Whether a verdict is put off: it was the machine that took the time, not the looks. */
static bool came_late(struct watchdog *w, const struct budget *budget)
{
	bool waited = !budget_left(budget) && clock_cpu_us() < budget->cpu_us;

	w->late = waited ? w->late + 1 : 0;
	return waited && w->late < MAX_LATE;
}

int watchdog_check(struct watchdog *w, uint64_t *ret_used, unsigned *ret_next_ms)
{
	uint64_t start = clock_ms();
	uint64_t bound = 0;

	/* Whatever a thread hides in a table of its own is shared memory of the
	 * machine: while all of that would still fit, nobody has to look. */
	w->threads = w->bound + machine_shmem() > w->limit;
	w->lost = 0;
	watchdog_round_begin(w);
	(void)each_process(w, visit_bound, &bound);
	watchdog_round_end(w);
	uint64_t files = shared_files(w);
	uint64_t used = bound + files;
	w->bound = used;
	struct budget budget = budget_new(EXACT_CPU_MS, EXACT_WALL_MS);
	for (int look = 0; look < 2 && used > w->limit; look++) {
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
