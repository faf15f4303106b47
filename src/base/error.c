/* error.c - fills and wraps errors. */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int ssb_fail(struct ssb_error *err, enum ssb_code code, int sys_errno, const char *where,
             const char *fmt, ...)
{
	int saved = errno;

	if (err != NULL && err->code == SSB_OK) {
		va_list ap;
		va_start(ap, fmt);
		int n = vsnprintf(err->text, sizeof(err->text), fmt, ap);
		va_end(ap);
		if (sys_errno != 0 && n >= 0 && (size_t)n < sizeof(err->text)) {
			/* strerrordesc_np() uses no locale and no lock, and is safe after fork. */
			const char *desc = strerrordesc_np(sys_errno);
			snprintf(err->text + n, sizeof(err->text) - (size_t)n, ": %s",
			         desc != NULL ? desc : "unknown error");
		}
		snprintf(err->where, sizeof(err->where), "%s", where);
		err->sys_errno = sys_errno;
		err->code = code;
	}
	errno = saved;
	return -1;
}

int ssb_wrap(struct ssb_error *err, const char *fmt, ...)
{
	if (err != NULL) {
		char old[sizeof(err->text)];
		memcpy(old, err->text, sizeof(old));

		va_list ap;
		va_start(ap, fmt);
		int n = vsnprintf(err->text, sizeof(err->text), fmt, ap);
		va_end(ap);
		if (n >= 0 && (size_t)n < sizeof(err->text)) {
			snprintf(err->text + n, sizeof(err->text) - (size_t)n, ": %s", old);
		}
	}
	return -1;
}
