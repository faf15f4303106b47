/* tar_world.h - makes tar archives member by member, also invalid archives. */
#ifndef TESTS_TAR_WORLD_H
#define TESTS_TAR_WORLD_H

#include <stdio.h>
#include <string.h>

#include "unit.h"
#include "wire/tar.h"

struct made {
	char type;
	const char *name;
	const char *link; /* or NULL */
	const char *data; /* or NULL */
	unsigned mode;    /* 0: 0644 */
};

static inline void tar_sum(uint8_t block[TAR_BLOCK])
{
	unsigned sum = 0;

	memset(block + 148, ' ', 8);
	for (size_t i = 0; i < TAR_BLOCK; i++) {
		sum += block[i];
	}
	snprintf((char *)block + 148, 8, "%06o", sum);
}

static inline void tar_make(const struct made *m, uint8_t block[TAR_BLOCK])
{
	memset(block, 0, TAR_BLOCK);
	memcpy(block, m->name, strlen(m->name) < 100 ? strlen(m->name) : 100);
	snprintf((char *)block + 100, 8, "%07o", m->mode != 0 ? m->mode : 0644);
	snprintf((char *)block + 124, 12, "%011zo", m->data != NULL ? strlen(m->data) : 0);
	block[156] = (uint8_t)m->type;
	if (m->link != NULL) {
		memcpy(block + 157, m->link, strlen(m->link) < 100 ? strlen(m->link) : 100);
	}
	memcpy(block + 257,
	       "ustar\0"
	       "00",
	       8);
	tar_sum(block);
}

#endif
