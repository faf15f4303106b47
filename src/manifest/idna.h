/* idna.h - internationalised names. */
#ifndef MANIFEST_IDNA_H
#define MANIFEST_IDNA_H

/* Converts UTF-8 to A-labels ("xn--..."). The result can still contain characters that no
 * host name has (a full-width slash becomes "/"). Returns NULL, or "what is wrong; remedy"
 * as a static text; `*ret` is new on success. */
const char *idna_to_ascii(const char *name, char **ret);

#endif
