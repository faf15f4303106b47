/* policy_load.c - finds the owner's policy file, checks that it is the owner's, and reads it. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "os/file.h"
#include "policy/owner.h"
#include "policy/path.h"
#include "policy/policy_file.h"

int policy_load(const struct owner *o, const struct ssb_options *opt, struct policy *ret,
                struct ssb_diags *diags, struct ssb_error *err)
{
	const char *named = opt != NULL ? opt->policy_file : NULL;

	assert(ret != NULL && diags != NULL);
	if (named != NULL && *named == '\0') {
		return 0;
	}
	auto_free char *file =
	        named != NULL ? strdup(named) : path_join(o->config_dir, "policy.yaml");
	if (file == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "policy", "out of memory");
	}
	auto_buf text = BUF(MAX_YAML_BYTES);
	/* A user who can write this file decides what skills get. */
	int missing = owner_file_read(o, "policy file", file, &text, err);
	if (missing > 0 && named != NULL) {
		return ssb_fail(err, SSB_E_POLICY, ENOENT, file, "open the policy file");
	}
	if (missing != 0) {
		return missing > 0 ? 0 : -1;
	}
	int failed =
	        policy_parse(file, text.data != NULL ? text.data : "", text.len, ret, diags, err);
	if (text.data != NULL) {
		explicit_bzero(text.data, text.size); /* may contain passwords */
	}
	if (failed != 0) {
		return -1;
	}
	ret->file = steal_ptr(&file);
	return 0;
}
