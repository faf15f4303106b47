/* sarif.h - findings as SARIF 2.1.0, for code scanning. Pure. */
#ifndef CONSENT_SARIF_H
#define CONSENT_SARIF_H

#include "consent/lint.h"

/* Writes one document with one run. If the caller named the skill by a relative path, the places of
 * its findings are relative to the current directory; otherwise they are file: URIs. */
void sarif_write(struct buf *out, const struct lint skills[], size_t n);

#endif
