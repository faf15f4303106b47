/* notify.c - receives and answers seccomp notifications. */
#include "os/notify.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/own.h"
#include "os/probe.h"

#define RESTARTSYS 512   /* ERESTARTSYS, which only the kernel defines */
#define PAGE       4096U /* smallest page size; larger pages only need more reads */

#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS /* Linux 6.6 */
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS      _IOW('!', 4, uint64_t)
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#endif

int notify_fetch(pid_t pid, int number)
{
	auto_fd process = (int)syscall(SYS_pidfd_open, pid, 0);

	return process < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, process, number, 0);
}

void notify_prepare(int listener)
{
	(void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
}

bool notify_ends(void)
{
	unsigned major, minor;

	return probe_kernel(&major, &minor) == 0 && (major > 6 || (major == 6 && minor >= 11));
}

int notify_receive(int listener, struct seccomp_notif *ret)
{
	memset(ret, 0, sizeof(*ret)); /* the kernel requires zeros */
	return ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, ret);
}

static bool send_answer(int listener, struct seccomp_notif_resp *r)
{
	/* On ENOENT the caller has died, and no answer is needed. */
	return ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, r) == 0;
}

bool notify_continue(int listener, const struct seccomp_notif *n)
{
	return send_answer(listener,
	                   &(struct seccomp_notif_resp){
	                           .id = n->id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE });
}

void notify_refuse_id(int listener, uint64_t id, int error)
{
	(void)send_answer(listener, &(struct seccomp_notif_resp){ .id = id, .error = -error });
}

void notify_interrupt_id(int listener, uint64_t id)
{
	notify_refuse_id(listener, id, RESTARTSYS);
}

void notify_refuse(int listener, const struct seccomp_notif *n, int error)
{
	notify_refuse_id(listener, n->id, error);
}

bool notify_give(int listener, uint64_t id, int fd, int as, bool cloexec)
{
	struct seccomp_notif_addfd give = { .id = id,
		                            .flags = as < 0 ? SECCOMP_ADDFD_FLAG_SEND
		                                            : SECCOMP_ADDFD_FLAG_SETFD,
		                            .srcfd = (uint32_t)fd,
		                            .newfd = as < 0 ? 0 : (uint32_t)as,
		                            .newfd_flags = cloexec ? O_CLOEXEC : 0 };

	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &give) < 0) {
		notify_refuse_id(listener, id, errno);
		return false;
	}
	if (as >= 0) {
		(void)send_answer(listener, &(struct seccomp_notif_resp){ .id = id });
	}
	return true;
}

bool notify_valid_id(int listener, uint64_t id)
{
	return ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

bool notify_valid(int listener, const struct seccomp_notif *n)
{
	return notify_valid_id(listener, n->id);
}

ssize_t notify_read(pid_t pid, uint64_t address, void *out, size_t len)
{
	struct iovec local = { .iov_base = out, .iov_len = len };
	struct iovec remote = { .iov_base = (void *)(uintptr_t)address, .iov_len = len };

	return process_vm_readv(pid, &local, 1, &remote, 1, 0);
}

ssize_t notify_read_string(pid_t pid, uint64_t address, char *out, size_t size)
{
	size_t n = 0;

	assert(size > 0);
	while (n < size) {
		/* Do not read across the end of a page, since the next page may not be mapped. Most
		 * strings are short, so the first piece is short, too. */
		size_t piece = PAGE - (size_t)((address + n) % PAGE);
		size_t most = n == 0 && size > 256 ? 256 : size - n;
		piece = piece < most ? piece : most;
		ssize_t got = notify_read(pid, address + n, out + n, piece);
		if (got <= 0) {
			errno = got == 0 ? EFAULT : errno;
			return -1;
		}
		const char *end = memchr(out + n, '\0', (size_t)got);
		if (end != NULL) {
			return end - out;
		}
		n += (size_t)got;
	}
	errno = ENAMETOOLONG;
	return -1;
}
