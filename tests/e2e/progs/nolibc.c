/* nolibc - a static program without libc, like Go's runtime: it makes its own system calls,
 * including a thread by raw clone. Prints "static ok". */
#include <asm/unistd.h>
#include <linux/sched.h>

static long call(long n, long a, long b, long c, long d, long e)
{
	long r;
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	__asm__ volatile("syscall"
	                 : "=a"(r)
	                 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
	                 : "rcx", "r11", "memory");
	return r;
}

static volatile int reached;
static char stack[65536] __attribute__((aligned(16)));

static void thread(void)
{
	reached = 1;
	call(__NR_futex, (long)&reached, 1 | 128, 1, 0, 0);
	call(__NR_exit, 0, 0, 0, 0, 0);
}

/* Clone with a new stack whose top holds the address to return to. */
static long start_thread(void)
{
	long *top = (long *)(stack + sizeof(stack) - 64);
	long flags =
	        CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
	long r;
	*top = (long)thread;
	__asm__ volatile("syscall\n\t"
	                 "test %%rax, %%rax\n\t"
	                 "jnz 1f\n\t"
	                 "ret\n"
	                 "1:"
	                 : "=a"(r)
	                 : "a"((long)__NR_clone), "D"(flags), "S"(top), "d"(0)
	                 : "rcx", "r11", "memory");
	return r;
}

void _start(void)
{
	char message[] = "static ok\n";
	__asm__ volatile("and $-16, %rsp");
	if (start_thread() > 0) {
		while (!reached) {
			call(__NR_sched_yield, 0, 0, 0, 0, 0);
		}
		call(__NR_write, 1, (long)message, sizeof(message) - 1, 0, 0);
	}
	call(__NR_exit_group, reached ? 0 : 1, 0, 0, 0, 0);
}
