/* idna.c - converts names with libidn2. The library is loaded only for a name that needs it, so
 * that no other run takes that time and the program does not depend on it. */
#include "manifest/idna.h"

#include <dlfcn.h>
#include <string.h>

#include "manifest/check.h"

/* A flag of libidn2's stable ABI, so its header is not needed to build. IDN2_USE_STD3_ASCII_RULES
 * (32) is not set, because it silently drops forbidden characters: "bü/cher" would become "bücher".
 * The caller checks the labels. */
#define NONTRANSITIONAL 8

typedef int to_ascii_fn(const char *input, char **output, int flags);
typedef void free_fn(void *ptr);

static void close_library(void **lib)
{
	if (*lib != NULL) {
		(void)dlclose(*lib);
	}
}

const char *idna_to_ascii(const char *name, char **ret)
{
	__attribute__((cleanup(close_library))) void *lib =
	        dlopen("libidn2.so.0", RTLD_NOW | RTLD_LOCAL);
	to_ascii_fn *to_ascii = NULL;
	free_fn *release = NULL;

	if (lib != NULL) {
		*(void **)&to_ascii = dlsym(lib, "idn2_to_ascii_8z");
		*(void **)&release = dlsym(lib, "idn2_free");
	}
	if (to_ascii == NULL || release == NULL) {
		return "has characters outside ASCII, and libidn2 is not installed; "
		       "write the xn-- form";
	}
	char *found = NULL;
	if (to_ascii(name, &found, NONTRANSITIONAL) != 0) {
		return "is not a valid internationalised name; write the xn-- form";
	}
	char *copy = strdup(found);
	release(found);
	if (copy == NULL) {
		return CHECK_NOMEM;
	}
	*ret = copy;
	return NULL;
}
