/* dns.c - parses and writes DNS messages: the part of RFC 1035 that a stub resolver needs, with
 * EDNS(0).
 *
 * A message is a header of 12 bytes, then questions, then records:
 *   header:   id, flags, number of questions, answers, authorities, additionals
 *   question: name, type, class
 *   record:   name, type, class, ttl, length, data
 * A question message has one question, no answers and no authorities. Among its additional
 * records only OPT has a meaning here. A message is malformed unless its last record ends exactly
 * where the message ends. */
#include <string.h>

#include "base/utf8.h"
#include "wire/dns.h"

#define HEADER_LEN   12
#define QUESTION_END 4  /* type and class, after the name */
#define RECORD_FIXED 10 /* type, class, ttl, length, after the name */
#define MAX_LABEL    63
#define MAX_WIRE     255 /* a name with its length bytes and the final zero */
#define MIN_UDP      512
#define MAX_UDP      1232 /* fits into one packet on every network, without fragments */
#define MAX_TCP      65535

#define FLAG_QR     0x80 /* byte 2 of the header */
#define FLAG_OPCODE 0x78
#define FLAG_TC     0x02
#define FLAG_RD     0x01
#define FLAG_RA     0x80 /* byte 3 */

#define CLASS_IN 1
#define TYPE_OPT 41
#define OPT_LEN  11

enum { FORMERR = 1, NXDOMAIN = 3, NOTIMP = 4, REFUSED = 5, BADVERS = 16 };

/* The unread rest of a message. */
struct cursor {
	const uint8_t *p;
	size_t left;
};

static bool skip_bytes(struct cursor *c, size_t n)
{
	if (c->left < n) {
		return false;
	}
	c->p += n;
	c->left -= n;
	return true;
}

static uint16_t read_u16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static uint8_t *write_u16(uint8_t *p, size_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
	return p + 2;
}

/* Copies a label as text, in lower case. A dot in the label would look like the end of the label;
 * it becomes '?', and so does a byte that is not a part of a character. Characters outside ASCII
 * are kept for the trace. In all these cases *odd is set, because no host name has such a label. */
static void put_label(const char *label, size_t len, char *out, bool *odd)
{
	for (size_t i = 0, n; i < len; i += n) {
		uint32_t c = 0;
		size_t known = utf8_decode(label + i, len - i, &c);
		bool text = known > 0 && c >= 0x20 && c != 0x7f && c != '.';

		n = known > 1 ? known : 1;
		*odd |= !text || n > 1;
		memcpy(out + i, text ? label + i : "?", n); /* an invalid byte is one character */
		if (c >= 'A' && c <= 'Z') {
			out[i] = (char)(c - 'A' + 'a');
		}
	}
}

/* Reads the name of the question. Compression pointers are refused: a pointer leads to an earlier
 * name, and this is the first name of the message. Returns false if the name is malformed. */
static bool read_name(struct cursor *c, char name[DNS_MAX_NAME], bool *odd)
{
	size_t wire = 0, n = 0;

	for (;;) {
		size_t label = c->left > 0 ? c->p[0] : MAX_LABEL + 1;
		if (label > MAX_LABEL || !skip_bytes(c, 1 + label)) {
			return false;
		}
		const uint8_t *text = c->p - label;
		wire += 1 + label;
		if (label == 0) {
			break;
		}
		if (wire >= MAX_WIRE) { /* no room for the final zero */
			return false;
		}
		if (n > 0) {
			name[n++] = '.';
		}
		put_label((const char *)text, label, name + n, odd);
		n += label;
	}
	name[n] = '\0';
	return true;
}

/* Skips the owner name of a record. A pointer ends the name and is not followed. Returns false if
 * the name is malformed. */
static bool skip_name(struct cursor *c)
{
	size_t wire = 0;

	while (wire < MAX_WIRE && c->left > 0) {
		uint8_t label = c->p[0];
		if (label >= 0xc0) {
			return skip_bytes(c, 2);
		}
		if (label > MAX_LABEL || !skip_bytes(c, 1U + label)) {
			return false;
		}
		if (label == 0) {
			return true;
		}
		wire += 1U + label;
	}
	return false;
}

/* Reads one additional record. For an OPT record, fills `q` and *ret_version. Returns false if the
 * record is malformed. */
static bool read_additional(struct cursor *c, struct dns_question *q, uint8_t *ret_version)
{
	bool root = c->left > 0 && c->p[0] == 0;

	if (!skip_name(c) || c->left < RECORD_FIXED) {
		return false;
	}
	const uint8_t *fixed = c->p;
	(void)skip_bytes(c, RECORD_FIXED);
	if (!skip_bytes(c, read_u16(fixed + 8))) {
		return false;
	}
	if (read_u16(fixed) != TYPE_OPT) {
		return true;
	}
	if (q->edns || !root) { /* only one OPT is allowed, and its name must be the root */
		return false;
	}
	uint16_t size = read_u16(fixed + 2);
	q->edns = true;
	q->udp_size = size < MIN_UDP ? MIN_UDP : size > MAX_UDP ? MAX_UDP : size;
	*ret_version = fixed[5];
	return true;
}

static enum dns_type known_type(uint16_t qtype)
{
	switch (qtype) {
	case DNS_A:
	case DNS_AAAA:
	case DNS_SVCB:
	case DNS_HTTPS:
		return (enum dns_type)qtype;
	default:
		return DNS_OTHER;
	}
}

/* Fills q from a message that has a header. Returns 0 if the question can be answered, otherwise
 * the rcode of the refusal. */
static uint8_t parse_question(const uint8_t *msg, size_t len, struct dns_question *q)
{
	struct cursor c = { msg + HEADER_LEN, len - HEADER_LEN };
	uint16_t additional = read_u16(msg + 10);
	uint8_t version = 0;
	bool odd = false;

	if ((msg[2] & FLAG_OPCODE) != 0) {
		return NOTIMP;
	}
	if (len > DNS_MAX_MESSAGE || read_u16(msg + 4) != 1 || read_u16(msg + 6) != 0 ||
	    read_u16(msg + 8) != 0) {
		return FORMERR;
	}
	if (!read_name(&c, q->name, &odd) || c.left < QUESTION_END) {
		q->name[0] = '\0';
		return FORMERR;
	}
	q->qtype = read_u16(c.p);
	q->type = known_type(q->qtype);
	uint16_t class = read_u16(c.p + 2);
	(void)skip_bytes(&c, QUESTION_END);
	q->question_len = len - HEADER_LEN - c.left;
	for (unsigned i = 0; i < additional; i++) {
		if (!read_additional(&c, q, &version)) {
			return FORMERR;
		}
	}
	if (c.left > 0) {
		return FORMERR;
	}
	if (version > 0) {
		return BADVERS;
	}
	return class != CLASS_IN ? REFUSED : odd ? NXDOMAIN : 0;
}

enum dns_verdict dns_parse(const uint8_t *msg, size_t len, struct dns_question *ret)
{
	if (len < HEADER_LEN || (msg[2] & FLAG_QR) != 0) {
		return DNS_DROP;
	}
	struct dns_question q = { .id = read_u16(msg), .udp_size = MIN_UDP };
	q.rcode = parse_question(msg, len, &q);
	*ret = q;
	return q.rcode == 0 ? DNS_QUESTION : DNS_REFUSE;
}

/* Writes as many address records as fit and returns their number. */
static size_t put_addresses(const struct dns_question *q, const uint8_t *addr, size_t n_addr,
                            uint32_t ttl, uint8_t *out, size_t room)
{
	size_t size = q->type == DNS_A ? 4 : 16;
	size_t record = 2 + RECORD_FIXED + size;
	size_t n = 0;

	for (; n < n_addr && room - n * record >= record; n++) {
		out = write_u16(out,
		                0xc000 | HEADER_LEN); /* a pointer to the name of the question */
		out = write_u16(out, q->qtype);
		out = write_u16(out, CLASS_IN);
		out = write_u16(out, ttl >> 16);
		out = write_u16(out, ttl & 0xffff);
		out = write_u16(out, size);
		memcpy(out, addr + n * size, size);
		out += size;
	}
	return n;
}

static void put_opt(uint8_t rcode, uint8_t out[OPT_LEN])
{
	memset(out, 0, OPT_LEN);
	(void)write_u16(out + 1, TYPE_OPT);
	(void)write_u16(out + 3, MAX_UDP);
	out[5] = (uint8_t)(rcode >> 4);
}

size_t dns_answer(const uint8_t *msg, const struct dns_question *q, uint8_t rcode,
                  const uint8_t *addr, size_t n_addr, uint32_t ttl, uint8_t *out, size_t room)
{
	size_t len = HEADER_LEN + q->question_len;

	if (room < len) {
		return 0;
	}
	room = room > MAX_TCP ? MAX_TCP : room;
	bool opt = q->edns && room - len >= OPT_LEN;
	bool addresses = rcode == 0 && (q->type == DNS_A || q->type == DNS_AAAA);
	size_t record = 2 + RECORD_FIXED + (q->type == DNS_A ? 4U : 16U);
	size_t wanted = addresses ? n_addr : 0;
	size_t n = wanted == 0 ? 0
	                       : put_addresses(q, addr, wanted, ttl, out + len,
	                                       room - len - (opt ? OPT_LEN : 0));

	(void)write_u16(out, q->id);
	out[2] = (uint8_t)(FLAG_QR | (msg[2] & (FLAG_OPCODE | FLAG_RD)) |
	                   (n < wanted ? FLAG_TC : 0));
	out[3] = (uint8_t)(FLAG_RA | (rcode & 0x0f));
	(void)write_u16(out + 4, q->question_len > 0);
	(void)write_u16(out + 6, n);
	(void)write_u16(out + 8, 0);
	(void)write_u16(out + 10, opt);
	memcpy(out + HEADER_LEN, msg + HEADER_LEN, q->question_len);
	len += n * record;
	if (opt) {
		put_opt(rcode, out + len);
		len += OPT_LEN;
	}
	return len;
}
