/* banned.h - a list of functions that must not be used. The compiler's command line includes this
 * file in every .c file. */
#ifndef BASE_BANNED_H
#define BASE_BANNED_H

/* These headers come first, because a poisoned word may not appear again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

/* In a fortified libc some of these functions are macros, which cannot be poisoned. */
#undef strcpy
#undef strcat
#undef sprintf
#undef vsprintf
#undef strncpy
#undef strncat
#undef strtok

#pragma GCC poison strcpy strcat sprintf vsprintf gets strtok strncpy strncat
#pragma GCC poison system popen tmpnam mktemp tempnam atoi atol atoll

#endif
