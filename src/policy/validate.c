/* validate.c - ssb_validate(), which checks a manifest, or a skill without one. */
#include <sys/stat.h>

#include "base/own.h"
#include "policy/owner.h"
#include "skill/programs.h"
#include "skill/skill.h"
#include "skillsandbox.h"

static int validate_skill(const char *dir, struct ssb_diags *diags, struct ssb_error *err)
{
	AUTO(owner_done) struct owner owner = { 0 };
	AUTO(skill_found_done) struct skill_found found = { 0 };

	return owner_load(&owner, err) < 0
	               ? -1
	               : skill_find(dir, owner.config_dir, NULL, &found, diags, err);
}

int ssb_validate(const char *path, struct ssb_diags *diags, struct ssb_error *err)
{
	AUTO(manifest_freep) struct manifest *m = NULL;
	AUTO(skill_found_done) struct skill_found found = { 0 };
	struct stat st;

	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
		return validate_skill(path, diags, err);
	}
	int derived = skill_find_file(path, &found, diags, err);
	if (derived != 0) {
		return derived < 0 ? -1 : 0;
	}
	if (manifest_load(path, &m, diags, err) != 0) {
		return -1;
	}
	programs_warn(m->file, &m->command, SSB_WARNING, diags);
	return 0;
}
