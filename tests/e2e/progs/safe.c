/* safe - checks its own confinement and prints SAFE, or UNSAFE and the reason. The tests start it
 * many times, and each time another system call of the sandbox's set-up fails: if the program
 * starts at all, it must be confined. argv[1] is a file that must not be visible. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };
	const char *leak = NULL;

	(void)argc;
	if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 2) {
		leak = "no filter";
	} else if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1) {
		leak = "new privileges";
	} else if (getuid() == 0 || geteuid() == 0) {
		leak = "root";
	} else if (syscall(SYS_capget, &head, data) != 0 || data[0].permitted != 0 ||
	           data[1].permitted != 0 || prctl(PR_CAPBSET_READ, CAP_SYS_ADMIN, 0, 0, 0) != 0) {
		leak = "capabilities";
	} else if (open(argv[1], O_RDONLY) >= 0) {
		leak = "the secret";
	} else if (mkdir("/leak", 0700) == 0 || mkdir("/usr/leak", 0700) == 0) {
		leak = "the view is writable";
	} else if (unshare(CLONE_NEWUSER) == 0) {
		leak = "user namespace";
	} else if (open("/proc/1/environ", O_RDONLY) >= 0) {
		leak = "init's environment";
	} else if (getppid() != 1 || getsid(0) != getpid()) {
		leak = "session";
	} else if (fcntl(3, F_GETFD) >= 0 || fcntl(7, F_GETFD) >= 0) {
		leak = "an open fd";
	}
	printf("%s %s\n", leak == NULL ? "SAFE" : "UNSAFE", leak == NULL ? "" : leak);
	return leak == NULL ? 0 : 99;
}
