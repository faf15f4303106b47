/* tls_hello.c - parses the ClientHello (RFC 8446 4.1.2, RFC 6066 3), read in two passes.
 *
 * The first pass reads only the record headers, to see whether they contain one complete handshake
 * message of the right type. That pass must be cheap, because it is repeated whenever bytes arrive.
 * The second pass reads the message itself, with a reader that skips the record headers between the
 * fragments of the message. So the message need not be copied, only the name.
 *
 * The verdict for the first part of a message is TLS_MORE or the final verdict. So it does not
 * matter in which pieces the bytes arrive. */
#include <stdbool.h>
#include <string.h>

#include "wire/tls_hello.h"
#include "base/array.h"

#define RECORD_HEAD      5
#define RECORD_HANDSHAKE 22
#define RECORD_MAX       16384
#define MESSAGE_HEAD     4
#define CLIENT_HELLO     1
#define MAJOR            3
#define MAX_MINOR        4
#define RANDOM_LEN       32
#define MAX_SESSION_ID   32
#define MAX_LABEL        63
#define EXT_SERVER_NAME  0
#define HOST_NAME        0

/* encrypted_client_hello, the numbers of its drafts, and its predecessor ESNI. */
static const struct {
	uint16_t first, last;
} ENCRYPTED[] = {
	{ 0xfe08, 0xfe0d },
	{ 0xff02, 0xff02 },
	{ 0xffce, 0xffce },
};

/* Reads a message that consists of complete, well-formed records. */
struct hello_reader {
	const uint8_t *p;
	size_t fragment; /* bytes at p before the next record header */
	size_t left;     /* bytes of the message that were not read yet */
};

enum name_state { NAME_NONE, NAME_GOOD, NAME_BAD };

struct hello {
	enum name_state state;
	char name[TLS_MAX_NAME];
	bool encrypted;
};

static size_t read_u16(const uint8_t *p)
{
	return (size_t)p[0] << 8 | p[1];
}

static size_t smaller_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Reads n bytes; `out` may be NULL. Returns false if fewer are left. */
static bool take_bytes(struct hello_reader *r, uint8_t *out, size_t n)
{
	if (n > r->left) {
		return false;
	}
	r->left -= n;
	while (n > 0) {
		if (r->fragment == 0) {
			r->fragment = read_u16(r->p + 3);
			r->p += RECORD_HEAD;
		}
		size_t part = smaller_size(n, r->fragment);
		if (out != NULL) {
			memcpy(out, r->p, part);
			out += part;
		}
		r->p += part;
		r->fragment -= part;
		n -= part;
	}
	return true;
}

/* Reads a number of one or two bytes. */
static bool take_number(struct hello_reader *r, size_t bytes, size_t *ret)
{
	uint8_t raw[2] = { 0 };

	if (!take_bytes(r, raw + 2 - bytes, bytes)) {
		return false;
	}
	*ret = read_u16(raw);
	return true;
}

/* Skips a vector whose length field has `bytes` bytes. */
static bool skip_vector(struct hello_reader *r, size_t bytes, size_t min, size_t max, size_t unit)
{
	size_t n = 0;

	return take_number(r, bytes, &n) && n >= min && n <= max && n % unit == 0 &&
	       take_bytes(r, NULL, n);
}

/* True if libraries would treat a name with this last label as an IPv4 address: the label consists
 * of digits, or of 0x and hexadecimal digits. */
static bool looks_numeric(const char *last)
{
	if (last[0] == '0' && last[1] == 'x') {
		return last[2 + strspn(last + 2, "0123456789abcdef")] == '\0';
	}
	return last[strspn(last, "0123456789")] == '\0';
}

/* Normalises a name of n bytes in place; there must be room for a NUL after it. Returns false if no
 * host can have that name. */
static bool normalise_name(char *name, size_t n)
{
	const char *label = name;

	if (n > 0 && name[n - 1] == '.') {
		n--;
	}
	name[n] = '\0';
	for (size_t i = 0; i < n; i++) {
		if (name[i] >= 'A' && name[i] <= 'Z') {
			name[i] = (char)(name[i] - 'A' + 'a');
		}
	}
	for (;;) {
		size_t len = strspn(label, "abcdefghijklmnopqrstuvwxyz0123456789-_");
		if (len == 0 || len > MAX_LABEL) {
			return false;
		}
		if (label[len] != '.') {
			/* The first comparison is false if the label ends at a byte that no name
			 * has, such as NUL. */
			return label + len == name + n && n < TLS_MAX_NAME && !looks_numeric(label);
		}
		label += len + 1;
	}
}

/* Reads a server_name extension: a list of (type, name) that must have one entry; otherwise the
 * name is bad. Returns false if its lengths contradict each other. */
static bool take_server_name(struct hello_reader *r, size_t len, struct hello *h)
{
	char name[TLS_MAX_NAME + 1]; /* room for a final dot, or the NUL */
	size_t list = 0, type = 0, n = 0;
	bool again = h->state != NAME_NONE;

	if (len < 2 || !take_number(r, 2, &list) || list != len - 2) {
		return false;
	}
	h->state = NAME_BAD;
	if (list == 0) {
		return true;
	}
	if (list < 3 || !take_number(r, 1, &type) || !take_number(r, 2, &n) || n > list - 3) {
		return false;
	}
	if (again || type != HOST_NAME || n != list - 3 || n >= sizeof(name)) {
		return take_bytes(r, NULL, list - 3);
	}
	if (!take_bytes(r, (uint8_t *)name, n)) {
		return false;
	}
	if (normalise_name(name, n)) {
		h->state = NAME_GOOD;
		memcpy(h->name, name, strlen(name) + 1);
	}
	return true;
}

static bool is_encrypted(size_t type)
{
	return ARRAY_HAS(e, ENCRYPTED, sizeof(ENCRYPTED) / sizeof(ENCRYPTED[0]),
	                 type >= e->first && type <= e->last);
}

static bool take_extensions(struct hello_reader *r, struct hello *h)
{
	size_t all = 0;

	if (r->left == 0) { /* a ClientHello without extensions */
		return true;
	}
	if (!take_number(r, 2, &all) || all != r->left) {
		return false;
	}
	while (r->left > 0) {
		size_t type = 0, n = 0;
		if (!take_number(r, 2, &type) || !take_number(r, 2, &n) || n > r->left) {
			return false;
		}
		h->encrypted = h->encrypted || is_encrypted(type);
		bool ok = type == EXT_SERVER_NAME ? take_server_name(r, n, h)
		                                  : take_bytes(r, NULL, n);
		if (!ok) {
			return false;
		}
	}
	return true;
}

static bool take_hello(struct hello_reader *r, struct hello *h)
{
	uint8_t version[2] = { 0 };

	return take_bytes(r, version, sizeof(version)) && version[0] == MAJOR &&
	       take_bytes(r, NULL, RANDOM_LEN) && skip_vector(r, 1, 0, MAX_SESSION_ID, 1) &&
	       skip_vector(r, 2, 2, 0xfffe, 2) && /* cipher suites */
	       skip_vector(r, 1, 1, 255, 1) &&    /* compression methods */
	       take_extensions(r, h);
}

/* Checks a record header, or the part of it that has arrived. Returns TLS_NAME if it is complete
 * and valid. */
static enum tls_verdict check_record(const uint8_t *p, size_t len, bool first)
{
	enum tls_verdict bad = first ? TLS_NOT_TLS : TLS_BROKEN;

	if ((len > 0 && p[0] != RECORD_HANDSHAKE) || (len > 1 && p[1] != MAJOR)) {
		return bad;
	}
	if (len > 2 && p[2] > MAX_MINOR) {
		return TLS_BROKEN;
	}
	if (len < RECORD_HEAD) {
		return TLS_MORE;
	}
	size_t fragment = read_u16(p + 3);
	if (fragment == 0 || fragment > RECORD_MAX) {
		return TLS_BROKEN;
	}
	return first && len > RECORD_HEAD && p[RECORD_HEAD] != CLIENT_HELLO ? TLS_NOT_TLS
	                                                                    : TLS_NAME;
}

/* Walks the records up to the end of the first message. Returns TLS_NAME if the message is
 * complete; *ret_body is the length of its body. */
static enum tls_verdict find_message(const uint8_t *data, size_t len, size_t *ret_body)
{
	uint8_t head[MESSAGE_HEAD];
	size_t seen = 0; /* bytes of the message in the records before `pos` */
	size_t body = 0;

	for (size_t pos = 0;;) {
		if (TLS_HELLO_MAX - pos <=
		    RECORD_HEAD) { /* there is no room for another fragment */
			return TLS_BROKEN;
		}
		enum tls_verdict v = check_record(data + pos, len - pos, pos == 0);
		if (v != TLS_NAME) {
			return v;
		}
		size_t fragment = read_u16(data + pos + 3);
		pos += RECORD_HEAD;
		if (fragment > TLS_HELLO_MAX - pos) {
			return TLS_BROKEN;
		}
		size_t here = smaller_size(fragment, len - pos);
		for (size_t i = 0; i < here && seen + i < MESSAGE_HEAD; i++) {
			head[seen + i] = data[pos + i];
		}
		if (seen + here >= MESSAGE_HEAD) {
			body = (size_t)head[1] << 16 | read_u16(head + 2);
			/* Nothing may follow the message in its record: the server must answer
			 * first. */
			if (body > TLS_HELLO_MAX || seen + fragment > MESSAGE_HEAD + body) {
				return TLS_BROKEN;
			}
		}
		if (here < fragment) {
			return TLS_MORE;
		}
		seen += fragment;
		pos += fragment;
		if (seen == MESSAGE_HEAD + body) {
			*ret_body = body;
			return TLS_NAME;
		}
	}
}

enum tls_verdict tls_hello_parse(const uint8_t *data, size_t len, char ret_name[TLS_MAX_NAME])
{
	struct hello h = { .state = NAME_NONE };
	size_t body = 0;
	enum tls_verdict v = find_message(data, len, &body);

	if (v != TLS_NAME) {
		return v;
	}
	struct hello_reader r = { .p = data, .left = MESSAGE_HEAD + body };
	if (!take_bytes(&r, NULL, MESSAGE_HEAD) || !take_hello(&r, &h)) {
		return TLS_BROKEN;
	}
	if (h.state == NAME_BAD) {
		return TLS_BAD_NAME;
	}
	if (h.state == NAME_GOOD || h.encrypted) {
		memcpy(ret_name, h.name, sizeof(h.name));
		return h.encrypted ? TLS_ECH : TLS_NAME;
	}
	return TLS_NO_NAME;
}
