#include "os/library.h"

#include <dlfcn.h>
#include <string.h>

#include "base/error.h"

int library_load(const struct library *l, void *table, bool *loaded, const char *where,
                 struct ssb_error *err)
{
	if (*loaded) {
		return 0;
	}
	void *lib = dlopen(l->file, RTLD_NOW | RTLD_LOCAL);
	if (lib == NULL) {
		return ssb_fail(err, SSB_E_NOT_FOUND, 0, where,
		                "%s is not there (%s); install the package %s", l->what, l->file,
		                l->package);
	}
	for (size_t i = 0; i < l->n_calls; i++) {
		void *call = dlsym(lib, l->calls[i].name);
		if (call == NULL) {
			return ssb_fail(err, SSB_E_NOT_FOUND, 0, where,
			                "%s is too old: it has no %s; upgrade the package %s",
			                l->what, l->calls[i].name, l->package);
		}
		memcpy((char *)table + l->calls[i].offset, &call, sizeof(call));
	}
	*loaded = true;
	return 0;
}
