/* idna.h - internationalised names. */
#ifndef MANIFEST_IDNA_H
#define MANIFEST_IDNA_H

/* UTF-8 to A-labels ("xn--..."); the result can still hold characters that no
 * host name has (a full-width slash becomes "/"). NULL, or "what is wrong;
 * remedy" as a static text; `*ret` is new on success. */
const char *idna_to_ascii(const char *name, char **ret);

#endif
