/* validate.c - the public door to the manifest checker. */
#include "manifest/manifest.h"
#include "skillsandbox.h"

int ssb_validate(const char *path, struct ssb_diags *diags, struct ssb_error *err)
{
	struct manifest *m = NULL;

	if (manifest_load(path, &m, diags, err) < 0) {
		return -1;
	}
	manifest_free(m);
	return 0;
}
