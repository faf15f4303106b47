/* sarif.h - findings as SARIF 2.1.0, for code scanning. Pure. */
#ifndef CONSENT_SARIF_H
#define CONSENT_SARIF_H

#include "consent/lint.h"

/* One document with one run. The place of a finding is relative to the current directory
 * where the skill was named so, else a file: address. */
void sarif_write(struct buf *out, const struct lint skills[], size_t n);

#endif
