/* act - a program in the sandbox that executes orders, one after the other. The driver outside
 * writes the orders to a board.
 *
 * The board is a granted file that act and the driver map into memory. Every thread and process of
 * the program is an actor with a number. The driver writes an order, puts the actor's number into
 * `turn` and waits until `done` has grown. So it knows what the kernel did in each step. Only the
 * system call of an order reaches the observer: there is no libc, and no other file is opened. */
#include <asm/unistd.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <stdint.h>

#define BOARD_FD   200 /* the fd of the board; stays open after execve() */
#define TEXTS      3
#define TEXT_BYTES 8192
#define ACTORS     16
#define STACK      16384

enum order {
	ORDER_CALL,  /* number, arguments */
	ORDER_CLONE, /* flags, number of the new actor */
	ORDER_EXEC,  /* number, arguments; run_program() adds argv */
	ORDER_EXIT,  /* number, status; act answers before the call */
};

/* The same layout as BOARD in board.py. */
struct board {
	uint32_t turn; /* number of the order * 256 + actor */
	uint32_t done;
	uint32_t order;
	/* two bits for each argument i: 0 means that it is the number arg[i], n that it is text[n -
	 * 1] */
	uint32_t texts;
	int64_t number;
	int64_t arg[6];
	int64_t ret;
	uint32_t pid, tid; /* numbers of the actor that began last */
	char text[TEXTS][TEXT_BYTES];
};

static struct board *board;
static _Alignas(16) char stacks[ACTORS][STACK];

static long call(long n, long a, long b, long c, long d, long e, long f)
{
	long r;
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	__asm__ volatile("syscall"
	                 : "=a"(r)
	                 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
	                 : "rcx", "r11", "memory");
	return r;
}

/* Starts a new actor in live(). It gets its own stack, also if it does not share memory. */
static long make_actor(long flags, long actor)
{
	long *top = (long *)(void *)(stacks[actor] + STACK - 24);
	long r;
	register long r10 __asm__("r10") = 0;
	register long r8 __asm__("r8") = 0;
	*top = actor;
	__asm__ volatile("syscall\n\t"
	                 "test %%rax, %%rax\n\t"
	                 "jnz 1f\n\t"
	                 "pop %%rdi\n\t"
	                 "call live\n"
	                 "1:"
	                 : "=a"(r)
	                 : "a"((long)__NR_clone), "D"(flags), "S"(top), "d"(0), "r"(r10), "r"(r8)
	                 : "rcx", "r11", "memory");
	return r;
}

static void answer(long ret)
{
	board->ret = ret;
	__atomic_add_fetch(&board->done, 1, __ATOMIC_SEQ_CST);
	call(__NR_futex, (long)&board->done, FUTEX_WAKE, 1, 0, 0, 0);
}

static long run_program(const long *arg, long self)
{
	static char number[3];
	static char *const none[] = { 0 };
	number[0] = (char)('0' + self / 10);
	number[1] = (char)('0' + self % 10);
	char *argv[] = { "act", number, 0 };

	return board->number == __NR_execve
	               ? call(__NR_execve, arg[0], (long)argv, (long)none, 0, 0, 0)
	               : call(__NR_execveat, arg[0], arg[1], (long)argv, (long)none, arg[4], 0);
}

static void obey(long self)
{
	long number = board->number, arg[6];

	for (int i = 0; i < 6; i++) {
		unsigned text = board->texts >> (2 * i) & 3;
		arg[i] = text > 0 ? (long)board->text[text - 1] : board->arg[i];
	}
	switch ((enum order)board->order) {
	case ORDER_CALL:
		answer(call(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]));
		break;
	case ORDER_CLONE:
		answer(make_actor(arg[0], arg[1]));
		break;
	case ORDER_EXEC:
		answer(run_program(arg, self));
		break;
	case ORDER_EXIT:
		answer(0); /* after this the driver may already write the next order */
		call(number, arg[0], 0, 0, 0, 0, 0);
		break;
	}
}

__attribute__((used)) _Noreturn void live(long self)
{
	uint32_t seen = __atomic_load_n(&board->turn, __ATOMIC_SEQ_CST);

	board->pid = (uint32_t)call(__NR_getpid, 0, 0, 0, 0, 0, 0);
	board->tid = (uint32_t)call(__NR_gettid, 0, 0, 0, 0, 0, 0);
	answer(0);
	for (;;) {
		call(__NR_futex, (long)&board->turn, FUTEX_WAIT, seen, 0, 0, 0);
		uint32_t turn = __atomic_load_n(&board->turn, __ATOMIC_SEQ_CST);
		if (turn != seen && (turn & 255) == self) {
			obey(self);
		}
		seen = turn;
	}
}

/* "act BOARD" begins a program. If an actor with the number NN executes act, the arguments are "act
 * NN". If it executes a script whose interpreter is act, they are "act SCRIPT NN". */
__attribute__((used)) _Noreturn void begin(long *stack)
{
	char **argv = (char **)(stack + 1);
	long self = 0;

	argv += stack[0] > 2;

	if (argv[1][0] == '/') {
		long fd = call(__NR_openat, -100, (long)argv[1], 2 /* O_RDWR */, 0, 0, 0);
		call(__NR_dup2, fd, BOARD_FD, 0, 0, 0, 0);
		call(__NR_close, fd, 0, 0, 0, 0, 0);
	} else {
		self = (argv[1][0] - '0') * 10 + argv[1][1] - '0';
	}
	board = (struct board *)call(__NR_mmap, 0, sizeof(*board), 3, 1 /* MAP_SHARED */, BOARD_FD,
	                             0);
	if ((unsigned long)board > -4096UL) {
		call(__NR_exit_group, 99, 0, 0, 0, 0, 0);
	}
	live(self);
}

__asm__(".globl _start\n_start:\n\tmov %rsp, %rdi\n\tand $-16, %rsp\n\tcall begin\n");
