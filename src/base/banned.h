/* banned.h - functions that have no safe use here. Included by every .c
 * through the compiler's command line. */
#ifndef BASE_BANNED_H
#define BASE_BANNED_H

/* The declarations first: a poisoned word may not appear again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

/* Some are macros of a fortified libc, which may not be poisoned. */
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
