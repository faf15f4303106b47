/* Reads an archive of arbitrary bytes: the data of each member must be inside of the archive, its
 * names must end with a NUL, and only a kind of member that can have data may have data. */
#include <string.h>

#include "fuzz.h"
#include "wire/tar.h"

static void check(const struct tar_member *m)
{
	must(memchr(m->name, '\0', sizeof(m->name)) != NULL);
	must(memchr(m->link, '\0', sizeof(m->link)) != NULL);
	must(m->mode <= 07777);
	must(m->size == 0 || m->type == TAR_FILE || m->type >= TAR_PAX);
	must(tar_padded(m->size) >= m->size && tar_padded(m->size) % TAR_BLOCK == 0);
}

/* Copies the data to a block of exactly its size, so that a sanitizer reports a read past its
 * end. */
static int extra(enum tar_type type, const uint8_t *data, size_t len, struct tar_over *over)
{
	const char *why = NULL;
	char *exact = malloc(len > 0 ? len : 1);

	must(exact != NULL);
	memcpy(exact, data, len);
	int rc = tar_extra(type, exact, len, over, &why);
	free(exact);
	must((rc < 0) == (why != NULL));
	return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct tar_over over;
	static struct tar_member m;
	const char *why = NULL;

	memset(&over, 0, sizeof(over));
	/* The bytes are also read as an extended header alone, because a fuzzer rarely finds a
	 * valid checksum. */
	for (int type = TAR_PAX; type <= TAR_LONG_LINK; type++) {
		(void)extra((enum tar_type)type, data, size, &over);
	}
	memset(&over, 0, sizeof(over));
	while (size >= TAR_BLOCK && tar_header(data, &m, &why) == 1) {
		check(&m);
		data += TAR_BLOCK;
		size -= TAR_BLOCK;
		if (tar_padded(m.size) > size) {
			break;
		}
		if (m.type >= TAR_PAX && m.type != TAR_PAX_GLOBAL) {
			if (extra(m.type, data, (size_t)m.size, &over) != 0) {
				break;
			}
		} else if (m.type < TAR_PAX && tar_apply(&over, &m, &why) == 0) {
			check(&m);
			if (tar_padded(m.size) > size) {
				break;
			}
		}
		data += tar_padded(m.size);
		size -= (size_t)tar_padded(m.size);
	}
	return 0;
}
