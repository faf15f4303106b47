/* files.c - computes the digest of a skill's files. No I/O; files_walk.c reads the files. */
#include "skill/files.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"

void skill_file_done(struct skill_file *f)
{
	free(f->path);
	free(f->link);
	*f = (struct skill_file){ 0 };
}

void skill_files_done(struct skill_files *f)
{
	for (size_t i = 0; i < f->n; i++) {
		skill_file_done(&f->v[i]);
	}
	free(f->v);
	*f = (struct skill_files){ 0 };
}

unsigned skill_file_mode(const struct skill_file *f)
{
	return (f->mode & 0555) | 0400;
}

bool skill_file_executable(const struct skill_file *f)
{
	return f->link == NULL && !f->dir && (f->mode & 0111) != 0;
}

void skill_files_digest(const struct skill_files *f, uint8_t ret[SHA256_BYTES])
{
	struct sha256 s;
	char head[2 * SHA256_BYTES + 16];
	char hex[2 * SHA256_BYTES + 1];

	assert(f->n == 0 || f->v != NULL);
	sha256_init(&s);
	for (size_t i = 0; i < f->n; i++) {
		const struct skill_file *e = &f->v[i];
		char kind = e->dir ? 'd' : e->link != NULL ? 'l' : 'f';
		memset(hex, '-', sizeof(hex) - 1);
		hex[sizeof(hex) - 1] = '\0';
		if (e->no_digest == NULL) {
			hex_encode(e->sha256, sizeof(e->sha256), hex);
		}
		int n = snprintf(head, sizeof(head), "%c%04o %s ", kind, skill_file_mode(e), hex);
		sha256_update(&s, head, (size_t)n);
		sha256_update(&s, e->path, strlen(e->path) + 1);
	}
	sha256_final(&s, ret);
}
