/* tar.c - parses the headers of ustar, pax and GNU archives. */
#include "wire/tar.h"
#include "base/array.h"

#include <string.h>

#define MAX_SIZE (UINT64_C(1) << 48)

/* The offsets of the fields in a header. */
enum {
	NAME = 0,
	NAME_LEN = 100,
	MODE = 100,
	SIZE = 124,
	SUM = 148,
	TYPE = 156,
	LINK = 157,
	MAGIC = 257,
	PREFIX = 345,
	PREFIX_LEN = 155,
};

/* Reads a number: octal digits up to a blank or NUL, or a big-endian number if the first byte is
 * 0x80. Returns false if it is malformed or too large. */
static bool read_octal(const uint8_t *at, size_t len, uint64_t *ret)
{
	uint64_t v = 0;
	size_t i = 0;

	if (at[0] == 0x80) {
		for (i = 1; i < len; i++) {
			if (v > MAX_SIZE) {
				return false;
			}
			v = v << 8 | at[i];
		}
		*ret = v;
		return v <= MAX_SIZE;
	}
	while (i < len && at[i] == ' ') {
		i++;
	}
	for (; i < len && at[i] >= '0' && at[i] <= '7'; i++) {
		v = v << 3 | (uint64_t)(at[i] - '0');
	}
	if (i < len && at[i] != ' ' && at[i] != '\0') {
		return false;
	}
	*ret = v;
	return v <= MAX_SIZE;
}

static bool is_zero(const uint8_t block[TAR_BLOCK])
{
	return !ARRAY_HAS(e, block, TAR_BLOCK, *e != 0);
}

static bool sum_matches(const uint8_t block[TAR_BLOCK])
{
	uint64_t said = 0, sum = 0;

	for (size_t i = 0; i < TAR_BLOCK; i++) {
		sum += i >= SUM && i < SUM + 8 ? ' ' : block[i];
	}
	return read_octal(block + SUM, 8, &said) && said == sum;
}

static size_t copy_field(char *out, const uint8_t *at, size_t len)
{
	size_t n = 0;

	while (n < len && at[n] != '\0') {
		out[n] = (char)at[n];
		n++;
	}
	out[n] = '\0';
	return n;
}

/* Reads name and link. Only POSIX archives have a prefix: GNU stores other data there. */
static void read_names(const uint8_t block[TAR_BLOCK], struct tar_member *m)
{
	size_t n = 0;

	if (memcmp(block + MAGIC, "ustar\0", 6) == 0 && block[PREFIX] != '\0') {
		n = copy_field(m->name, block + PREFIX, PREFIX_LEN);
		m->name[n++] = '/';
	}
	n += copy_field(m->name + n, block + NAME, NAME_LEN);
	(void)copy_field(m->link, block + LINK, NAME_LEN);
	/* Old archives have no type for directories: their names end with '/'. */
	if (m->type == TAR_FILE && n > 0 && m->name[n - 1] == '/') {
		m->type = TAR_DIR;
	}
}

static const struct {
	char flag;
	enum tar_type type;
} TYPES[] = {
	{ '\0', TAR_FILE },     { '0', TAR_FILE },       { '7', TAR_FILE },
	{ '1', TAR_HARDLINK },  { '2', TAR_SYMLINK },    { '3', TAR_SPECIAL },
	{ '4', TAR_SPECIAL },   { '5', TAR_DIR },        { '6', TAR_SPECIAL },
	{ 'x', TAR_PAX },       { 'g', TAR_PAX_GLOBAL }, { 'L', TAR_LONG_NAME },
	{ 'K', TAR_LONG_LINK },
};

static bool type_of(char flag, enum tar_type *ret)
{
	for (size_t i = 0; i < sizeof(TYPES) / sizeof(TYPES[0]); i++) {
		if (TYPES[i].flag == flag) {
			*ret = TYPES[i].type;
			return true;
		}
	}
	return false;
}

static bool has_data(enum tar_type type)
{
	return type == TAR_FILE || type >= TAR_PAX;
}

int tar_header(const uint8_t block[TAR_BLOCK], struct tar_member *ret, const char **ret_why)
{
	uint64_t mode = 0;

	if (is_zero(block)) {
		return 0;
	}
	if (!sum_matches(block)) {
		*ret_why =
		        "it is not a tar archive, or it is damaged: a header has a wrong checksum";
		return -1;
	}
	if (!type_of((char)block[TYPE], &ret->type)) {
		*ret_why = "a member has an unsupported type (sparse files are not supported)";
		return -1;
	}
	if (!read_octal(block + SIZE, 12, &ret->size) || !read_octal(block + MODE, 8, &mode)) {
		*ret_why = "a header has an invalid number";
		return -1;
	}
	ret->mode = (unsigned)(mode & 07777);
	read_names(block, ret);
	if (!has_data(ret->type) && ret->size != 0) {
		*ret_why = "a member has data, but its type cannot have any";
		return -1;
	}
	return 1;
}

/* Takes a long name. A NUL in it is refused, because two readers could read such a name
 * differently. */
static int take_path(char out[TAR_PATH], const char *s, size_t len, const char **ret_why)
{
	if (len == 0 || len >= TAR_PATH || memchr(s, '\0', len) != NULL) {
		*ret_why = "the long path of a member is empty, has more than 4095 bytes, or "
		           "contains a "
		           "NUL";
		return -1;
	}
	memcpy(out, s, len);
	out[len] = '\0';
	return 0;
}

static int take_size(const char *s, size_t len, struct tar_over *over, const char **ret_why)
{
	uint64_t v = 0;

	for (size_t i = 0; i < len; i++) {
		if (s[i] < '0' || s[i] > '9' || v > MAX_SIZE) {
			len = 0;
			break;
		}
		v = v * 10 + (uint64_t)(s[i] - '0');
	}
	if (len == 0 || v > MAX_SIZE) {
		*ret_why = "an extended header has an invalid size";
		return -1;
	}
	over->sized = true;
	over->size = v;
	return 0;
}

static bool is_key(const char *key, size_t len, const char *name)
{
	return strlen(name) == len && memcmp(key, name, len) == 0;
}

static int pax_record(const char *key, size_t key_len, const char *v, size_t len,
                      struct tar_over *over, const char **ret_why)
{
	if (is_key(key, key_len, "path")) {
		return take_path(over->name, v, len, ret_why);
	}
	if (is_key(key, key_len, "linkpath")) {
		return take_path(over->link, v, len, ret_why);
	}
	if (is_key(key, key_len, "size")) {
		return take_size(v, len, over, ret_why);
	}
	if (key_len > 10 && memcmp(key, "GNU.sparse", 10) == 0) {
		*ret_why = "it contains a sparse file, which is not supported";
		return -1;
	}
	return 0; /* times, owners and attributes are ignored */
}

/* Reads records of the form "LENGTH KEY=VALUE\n"; LENGTH is the length of the whole record. */
static int read_pax(const char *data, size_t len, struct tar_over *over, const char **ret_why)
{
	while (len > 0) {
		size_t n = 0, i = 0;
		for (; i < len && i < 8 && data[i] >= '0' && data[i] <= '9'; i++) {
			n = n * 10 + (size_t)(data[i] - '0');
		}
		const char *key = data + i + 1;
		if (i == 0 || i >= len || data[i] != ' ' || n > len || n < i + 4 ||
		    data[n - 1] != '\n') {
			*ret_why = "an extended header is malformed";
			return -1;
		}
		size_t rest = n - i - 2; /* the length of the key, "=" and the value */
		const char *eq = memchr(key, '=', rest);
		if (eq == NULL) {
			*ret_why = "an extended header has a line without '='";
			return -1;
		}
		size_t key_len = (size_t)(eq - key);
		if (pax_record(key, key_len, eq + 1, rest - key_len - 1, over, ret_why) != 0) {
			return -1;
		}
		data += n;
		len -= n;
	}
	return 0;
}

int tar_extra(enum tar_type type, const char *data, size_t len, struct tar_over *over,
              const char **ret_why)
{
	if (type == TAR_PAX) {
		return read_pax(data, len, over, ret_why);
	}
	if (len > 0 && data[len - 1] == '\0') {
		len--;
	}
	return take_path(type == TAR_LONG_LINK ? over->link : over->name, data, len, ret_why);
}

int tar_apply(struct tar_over *over, struct tar_member *m, const char **ret_why)
{
	if (over->name[0] != '\0') {
		memcpy(m->name, over->name, sizeof(m->name));
	}
	if (over->link[0] != '\0') {
		memcpy(m->link, over->link, sizeof(m->link));
	}
	if (over->sized) {
		m->size = over->size;
	}
	over->name[0] = over->link[0] = '\0';
	over->sized = false;
	if (!has_data(m->type) && m->size != 0) {
		*ret_why = "a member has data, but its type cannot have any";
		return -1;
	}
	return 0;
}
