/* banned.h - a list of functions that must not be used. The compiler's command line includes this
 * file in every .c file. */
#ifndef BASE_BANNED_H
#define BASE_BANNED_H

/* Include these headers before `#pragma GCC poison`. After the pragma, even their declaration of a
 * poisoned function would be an error. */
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
