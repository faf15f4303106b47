/* ca.c - the owner's own certificate authorities, for a run with egress.
 *
 * If a variable names a certificate bundle for the owner's programs, the skill's programs get that
 * variable, too: without it they could not verify a proxy or server of the owner's company. The
 * system's bundle is in every sandbox and needs nothing. The variable is not a grant of the owner,
 * so a bundle in a dangerous place is not passed. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "os/file.h"
#include "policy/build.h"
#include "policy/owner.h"
#include "policy/view.h"

#define SYSTEM_CERTIFICATES "/etc/ssl/certs" /* in every sandbox */

static const char *const VARIABLES[] = { "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS" };

static bool readable_file(const char *path, struct stat *st)
{
	return stat(path, st) == 0 && S_ISREG(st->st_mode) && access(path, R_OK) == 0;
}

/* Returns NULL if the file may be shown although the owner did not grant it by name; otherwise the
 * reason why it may not be shown. */
static const char *judge_file(struct build *b, int fd, const char *real)
{
	struct danger_hits hits;
	struct subject s;

	if (b->manifest != NULL && path_beneath(real, "/skill") != NULL) {
		return "it would lie in the skill's own directory";
	}
	if (build_danger(b, ACCESS_READ) == NULL || subject_init(&s, fd, real, NULL) < 0 ||
	    danger_judge(b->danger, &s, ACCESS_READ, &hits) < 0 ||
	    danger_judge_mounts(b->danger, danger_mounts(b->danger), &s, ACCESS_READ, &hits) < 0) {
		return "it cannot be examined";
	}
	return hits.n > 0 ? "it is in a dangerous place, which only you can grant" : NULL;
}

/* Grants the file. Returns NULL, or why it cannot be granted. The object that is granted is the one
 * that was judged. */
static const char *grant_file(struct build *b, const char *name, const char *real)
{
	auto_fd fd = file_open_nosymlink(real, O_PATH);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		return "it cannot be opened";
	}
	const char *why = judge_file(b, fd, real);
	if (why != NULL) {
		return why;
	}
	struct grant g = {
		.path = strdup(real),
		.target = strdup(real),
		.access = ACCESS_READ,
		.origin = ORIGIN_POLICY,
		.where = strdup(name),
		OPEN_FILE(steal_fd(&fd), &st),
	};
	grants_add(b, &g);
	return NULL;
}

static void add_bundle(struct build *b, const char *name, const char *value)
{
	auto_free char *real = realpath(value, NULL);
	struct stat st;
	const char *why = NULL;

	if (real == NULL || !readable_file(real, &st)) {
		why = "it is not a readable file";
	} else if (!view_is_system(real) && path_beneath(real, SYSTEM_CERTIFICATES) == NULL) {
		why = grant_file(b, name, real);
	}
	if (why != NULL) {
		build_warn(b, name, "%s is not passed: %.200s: %s; --read and --env can grant it",
		           name, value, why);
		return;
	}
	/* In the sandbox the file is at its path without symlinks. */
	auto_free char *pair = build_printf(b, "%s=%s", name, real);
	if (pair != NULL) {
		build_add(b, &b->ca_env, pair, ARRAY_LEN(VARIABLES));
	}
}

void ca_build(struct build *b)
{
	/* No bundle is needed if no host answers: in a plan without hosts, and in a learning run
	 * that may not connect. */
	bool answered = b->plan->n_egress > 0 && b->opt->learn.mode != LEARNING_CLOSED;

	for (size_t i = 0; answered && i < ARRAY_LEN(VARIABLES); i++) {
		const char *value = owner_getenv(b->owner, VARIABLES[i]);
		if (value != NULL && *value != '\0' && !env_is_decided(b, VARIABLES[i])) {
			add_bundle(b, VARIABLES[i], value);
		}
	}
}
