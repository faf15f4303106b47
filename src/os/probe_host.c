/* probe_host.c - reads the configuration of the machine for probe.h: sysctls, and the groups of the
 * caller. */
#include "os/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/number.h"
#include "base/own.h"

#define MAX_GROUPS 256

int probe_line(const char *path, char *ret_line, size_t size)
{
	char text[512];

	auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		return -1;
	}
	ssize_t n = read(fd, text, sizeof(text) - 1);
	if (n < 0) {
		return -1;
	}
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	snprintf(ret_line, size, "%s", text);
	return 0;
}

int probe_sysctl(const char *path, long *ret_value)
{
	char line[64];
	int64_t v = 0;

	if (probe_line(path, line, sizeof(line)) != 0) {
		return -1;
	}
	if (!number_parse_signed(line, &v)) {
		errno = EINVAL;
		return -1;
	}
	*ret_value = (long)v;
	return 0;
}

/* ---- groups --------------------------------------------------------------------- */

/* Groups whose members can become root without a password, or can read files of root. */
static const char *const RISKY_GROUPS[] = { "docker", "lxd",     "incus-admin", "disk",
	                                    "kvm",    "libvirt", "sudo",        "wheel",
	                                    "shadow", "adm",     "kmem" };

static bool is_member(gid_t gid, const gid_t *groups, int n)
{
	for (int i = 0; i < n; i++) {
		if (groups[i] == gid) {
			return true;
		}
	}
	return gid == getegid();
}

/* Parses a line "name:password:gid:members". Returns the name, or NULL if the line has another
 * form. */
static const char *group_of_line(char *line, gid_t *ret_gid)
{
	char *colon = strchr(line, ':');
	char *second = colon != NULL ? strchr(colon + 1, ':') : NULL;
	uint64_t gid = 0;
	const char *end = second != NULL ? number_read(second + 1, (gid_t)-1, &gid) : NULL;

	if (end == NULL || *end != ':') {
		return NULL;
	}
	*colon = '\0';
	*ret_gid = (gid_t)gid;
	return line;
}

static bool is_risky(const char *name)
{
	return ARRAY_HAS(e, RISKY_GROUPS, ARRAY_LEN(RISKY_GROUPS), strcmp(name, *e) == 0);
}

/* Reads /etc/group without getgrnam(), which would load name service modules, which a static or
 * sanitized program may not have. */
size_t probe_risky_groups(char *out, size_t size)
{
	gid_t groups[MAX_GROUPS];
	char line[4096];
	size_t found = 0;
	size_t used = 0;
	int n = getgroups(MAX_GROUPS, groups);

	out[0] = '\0';
	auto_file f = fopen("/etc/group", "re");
	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		gid_t gid = 0;
		const char *name = group_of_line(line, &gid);
		if (name == NULL || !is_risky(name) || !is_member(gid, groups, n)) {
			continue;
		}
		found++;
		if (used < size) {
			int len = snprintf(out + used, size - used, "%s%s", used > 0 ? ", " : "",
			                   name);
			used += len > 0 ? (size_t)len : 0;
		}
	}
	return found;
}
