/* test_dns.c - DNS: which messages are accepted as questions, which are refused and with which
 * code. The answers are read by a second parser. */
#include <stdlib.h>
#include <string.h>

#include "unit.h"
#include "base/own.h"
#include "wire/dns.h"

#define RAW(x)  (x), sizeof(x) - 1
#define ROWS(t) (sizeof(t) / sizeof((t)[0]))

/* a header: id 0xbeef, the flag RD, then the four counts */
#define HEAD(counts) "\276\357\001\0" counts
#define ONE          HEAD("\0\1\0\0\0\0\0\0")
#define ONE_EDNS     HEAD("\0\1\0\0\0\0\0\1")
#define NAME         "\003api\007example\003com\0"
#define A_IN         "\0\001\0\001"
#define OPT(size)    "\0\0\051" size "\0\0\0\0\0\0"
#define L63          "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define L61          "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define W63          "\077" L63
#define PLAIN        ONE NAME A_IN

enum { FORMERR = 1, NXDOMAIN = 3, NOTIMP = 4, REFUSED = 5, BADVERS = 16 };

/* Parses a copy that has exactly this size, so that a sanitizer reports a read past its end. */
static enum dns_verdict parse(const char *msg, size_t len, struct dns_question *ret)
{
	auto_free uint8_t *exact = malloc(len + (len == 0));

	assert_non_null(exact);
	memcpy(exact, msg, len);
	return dns_parse(exact, len, ret);
}

static const struct {
	const char *msg;
	size_t len;
	const char *name;
	uint16_t qtype;
	enum dns_type type;
	bool edns;
	uint16_t size;
} GOOD[] = {
	{ RAW(PLAIN), "api.example.com", 1, DNS_A, false, 512 },
	{ RAW(ONE "\003ApI\007eXAMPLe\003COM\0" A_IN), "api.example.com", 1, DNS_A, false, 512 },
	{ RAW(ONE NAME "\0\034\0\001"), "api.example.com", 28, DNS_AAAA, false, 512 },
	{ RAW(ONE NAME "\0\100\0\001"), "api.example.com", 64, DNS_SVCB, false, 512 },
	{ RAW(ONE NAME "\0\101\0\001"), "api.example.com", 65, DNS_HTTPS, false, 512 },
	{ RAW(ONE NAME "\0\020\0\001"), "api.example.com", 16, DNS_OTHER, false, 512 },
	{ RAW(ONE NAME "\0\377\0\001"), "api.example.com", 255, DNS_OTHER, false, 512 },
	{ RAW(ONE NAME "\1\1\0\001"), "api.example.com", 257, DNS_OTHER, false, 512 },
	{ RAW(ONE NAME "\0\0\0\001"), "api.example.com", 0, DNS_OTHER, false, 512 },
	{ RAW(ONE "\0" A_IN), "", 1, DNS_A, false, 512 },
	{ RAW(ONE "\001a\0" A_IN), "a", 1, DNS_A, false, 512 },
	{ RAW(ONE "\005_a b~\0" A_IN), "_a b~", 1, DNS_A, false, 512 },
	{ RAW(ONE W63 "\0" A_IN), L63, 1, DNS_A, false, 512 },
	{ RAW(ONE W63 W63 W63 "\075" L61 "\0" A_IN), L63 "." L63 "." L63 "." L61, 1, DNS_A, false,
	  512 },
	{ RAW(ONE_EDNS NAME A_IN OPT("\0\0")), "api.example.com", 1, DNS_A, true, 512 },
	{ RAW(ONE_EDNS NAME A_IN OPT("\1\377")), "api.example.com", 1, DNS_A, true, 512 },
	{ RAW(ONE_EDNS NAME A_IN OPT("\2\1")), "api.example.com", 1, DNS_A, true, 513 },
	{ RAW(ONE_EDNS NAME A_IN OPT("\004\320")), "api.example.com", 1, DNS_A, true, 1232 },
	{ RAW(ONE_EDNS NAME A_IN OPT("\004\321")), "api.example.com", 1, DNS_A, true, 1232 },
	{ RAW(ONE_EDNS NAME A_IN OPT("\377\377")), "api.example.com", 1, DNS_A, true, 1232 },
	/* an OPT record with a cookie and the DO bit */
	{ RAW(ONE_EDNS NAME A_IN "\0\0\051\004\320\0\0\200\0\0\014\0\012\0\010cookie!!"),
	  "api.example.com", 1, DNS_A, true, 1232 },
	/* another record beside the OPT; the name of that record is a pointer, which is not
	 * followed */
	{ RAW(HEAD("\0\1\0\0\0\0\0\2") NAME A_IN "\300\377\0\001\0\1\0\0\0\0\0\4abcd" OPT("\4\0")),
	  "api.example.com", 1, DNS_A, true, 1024 },
	{ RAW(HEAD("\0\1\0\0\0\0\0\1") NAME A_IN NAME "\0\001\0\1\0\0\0\0\0\0"), "api.example.com",
	  1, DNS_A, false, 512 },
	/* TC, AD and CD have no meaning in a question */
	{ RAW("\276\357\003\060\0\1\0\0\0\0\0\0" NAME A_IN), "api.example.com", 1, DNS_A, false,
	  512 },
};

static void test_questions(void **state)
{
	for (size_t i = 0; i < ROWS(GOOD); i++) {
		struct dns_question q = { 0 };
		assert_int_equal(parse(GOOD[i].msg, GOOD[i].len, &q), DNS_QUESTION);
		assert_string_equal(q.name, GOOD[i].name);
		assert_int_equal(q.id, 0xbeef);
		assert_int_equal(q.qtype, GOOD[i].qtype);
		assert_int_equal(q.type, GOOD[i].type);
		assert_int_equal(q.edns, GOOD[i].edns);
		assert_int_equal(q.udp_size, GOOD[i].size);
		assert_int_equal(q.question_len, strlen(q.name) + (q.name[0] != '\0') + 1 + 4);
	}
}

/* `question` is true if the answer to the message can repeat the question */
static const struct {
	const char *msg;
	size_t len;
	uint8_t rcode;
	bool question;
	const char *name;
} REFUSED_ROWS[] = {
	{ RAW(ONE), FORMERR, false, "" },
	{ RAW(HEAD("\0\0\0\0\0\0\0\0")), FORMERR, false, "" },
	{ RAW(HEAD("\0\2\0\0\0\0\0\0") NAME A_IN NAME A_IN), FORMERR, false, "" },
	{ RAW(HEAD("\1\0\0\0\0\0\0\0") NAME A_IN), FORMERR, false, "" },
	{ RAW(HEAD("\0\1\0\1\0\0\0\0") NAME A_IN), FORMERR, false, "" },
	{ RAW(HEAD("\0\1\0\0\0\1\0\0") NAME A_IN), FORMERR, false, "" },
	/* opcodes: inverse, status, notify, update, 15 */
	{ RAW("\276\357\011\0\0\1\0\0\0\0\0\0" NAME A_IN), NOTIMP, false, "" },
	{ RAW("\276\357\021\0\0\1\0\0\0\0\0\0" NAME A_IN), NOTIMP, false, "" },
	{ RAW("\276\357\041\0\0\1\0\0\0\0\0\0" NAME A_IN), NOTIMP, false, "" },
	{ RAW("\276\357\050\0\0\1\0\0\0\0\0\0" NAME A_IN), NOTIMP, false, "" },
	{ RAW("\276\357\170\0\0\0\0\0\0\0\0\0"), NOTIMP, false, "" },
	/* classes: CH, HS, ANY, 257 */
	{ RAW(ONE "\007version\004bind\0\0\020\0\003"), REFUSED, true, "version.bind" },
	{ RAW(ONE NAME "\0\001\0\004"), REFUSED, true, "api.example.com" },
	{ RAW(ONE NAME "\0\001\0\377"), REFUSED, true, "api.example.com" },
	{ RAW(ONE NAME "\0\001\001\001"), REFUSED, true, "api.example.com" },
	/* labels that would give another name if they were simply written as text */
	{ RAW(ONE "\013api.example\003com\0" A_IN), NXDOMAIN, true, "api?example.com" },
	{ RAW(ONE "\004a\0bc\003com\0" A_IN), NXDOMAIN, true, "a?bc.com" },
	{ RAW(ONE "\002\303\251\0" A_IN), NXDOMAIN, true, "\303\251" },
	{ RAW(ONE "\003\303\303\251\0" A_IN), NXDOMAIN, true, "?\303\251" },
	{ RAW(ONE "\001\303\001\251\0" A_IN), NXDOMAIN, true, "?.?" },
	{ RAW(ONE "\002\300\257\0" A_IN), NXDOMAIN, true, "??" },
	{ RAW(ONE "\001\177\0" A_IN), NXDOMAIN, true, "?" },
	{ RAW(ONE "\001\037\0" A_IN), NXDOMAIN, true, "?" },
	{ RAW(ONE "\001.\0" A_IN), NXDOMAIN, true, "?" },
	/* pointers: to itself, into the header, forward, after a label */
	{ RAW(ONE "\300\014" A_IN), FORMERR, false, "" },
	{ RAW(ONE "\300\000" A_IN), FORMERR, false, "" },
	{ RAW(ONE "\300\022" A_IN NAME), FORMERR, false, "" },
	{ RAW(ONE "\003api\300\014" A_IN), FORMERR, false, "" },
	/* label types 01 and 10, among them a label of 64 bytes */
	{ RAW(ONE "\100a" L63 "\0" A_IN), FORMERR, false, "" },
	{ RAW(ONE "\101\001" A_IN), FORMERR, false, "" },
	{ RAW(ONE "\200a\0" A_IN), FORMERR, false, "" },
	/* names of 254 bytes, and far longer ones */
	{ RAW(ONE W63 W63 W63 "\076a" L61 "\0" A_IN), FORMERR, false, "" },
	{ RAW(ONE W63 W63 W63 W63 "\0" A_IN), FORMERR, false, "" },
	{ RAW(ONE W63 W63 W63 W63 W63 W63 W63 W63 W63 "\0" A_IN), FORMERR, false, "" },
	/* bytes after the end; records that are missing or have a wrong length */
	{ RAW(PLAIN "x"), FORMERR, true, "api.example.com" },
	{ RAW(PLAIN OPT("\4\0")), FORMERR, true, "api.example.com" },
	{ RAW(ONE_EDNS NAME A_IN), FORMERR, true, "api.example.com" },
	{ RAW(HEAD("\0\1\0\0\0\0\377\377") NAME A_IN OPT("\4\0")), FORMERR, true,
	  "api.example.com" },
	{ RAW(ONE_EDNS NAME A_IN "\0\0\051\4\0\0\0\0\0\0\1"), FORMERR, true, "api.example.com" },
	{ RAW(ONE_EDNS NAME A_IN "\0\0\051\4\0\0\0\0\0\377\377"), FORMERR, true,
	  "api.example.com" },
	{ RAW(ONE_EDNS NAME A_IN "\100\0\051\4\0\0\0\0\0\0\0"), FORMERR, true, "api.example.com" },
	{ RAW(ONE_EDNS NAME A_IN "\300"), FORMERR, true, "api.example.com" },
	{ RAW(ONE_EDNS NAME A_IN W63 W63 W63 W63 W63 OPT("\4\0")), FORMERR, true,
	  "api.example.com" },
	/* two OPTs; an OPT with a name; an OPT of another version */
	{ RAW(HEAD("\0\1\0\0\0\0\0\2") NAME A_IN OPT("\4\0") OPT("\4\0")), FORMERR, true,
	  "api.example.com" },
	{ RAW(ONE_EDNS NAME A_IN "\001a" OPT("\4\0")), FORMERR, true, "api.example.com" },
	{ RAW(ONE_EDNS NAME A_IN "\0\0\051\4\0\0\1\0\0\0\0"), BADVERS, true, "api.example.com" },
};

static void test_refused(void **state)
{
	for (size_t i = 0; i < ROWS(REFUSED_ROWS); i++) {
		struct dns_question q = { 0 };
		assert_int_equal(parse(REFUSED_ROWS[i].msg, REFUSED_ROWS[i].len, &q), DNS_REFUSE);
		assert_int_equal(q.id, 0xbeef);
		assert_int_equal(q.rcode, REFUSED_ROWS[i].rcode);
		assert_int_equal(q.question_len > 0, REFUSED_ROWS[i].question);
		assert_string_equal(q.name, REFUSED_ROWS[i].name);
	}
}

static void test_dropped(void **state)
{
	struct dns_question q = { .id = 7 };

	for (size_t i = 0; i < 12; i++) {
		assert_int_equal(parse(PLAIN, i, &q), DNS_DROP);
	}
	assert_int_equal(parse(RAW("\276\357\201\200\0\1\0\0\0\0\0\0" NAME A_IN), &q), DNS_DROP);
	assert_int_equal(parse(RAW("\276\357\200\0\0\0\0\0\0\0\0\0"), &q), DNS_DROP);
	assert_int_equal(q.id, 7); /* a dropped message must not change it */
	assert_int_equal(parse(RAW(PLAIN), &q), DNS_QUESTION);
}

/* A question that is cut at any byte is not accepted. */
static void test_truncated(void **state)
{
	static const char whole[] = ONE_EDNS NAME A_IN OPT("\4\0");
	size_t header = 12;

	for (size_t len = 0; len < sizeof(whole) - 1; len++) {
		struct dns_question q = { 0 };
		enum dns_verdict v = parse(whole, len, &q);
		assert_int_equal(v, len < header ? DNS_DROP : DNS_REFUSE);
		assert_int_equal(q.rcode, len < header ? 0 : FORMERR);
	}
}

/* A message of exactly DNS_MAX_MESSAGE bytes is accepted; one byte more is refused. */
static void test_too_long(void **state)
{
	static const char head[] = ONE_EDNS NAME A_IN "\0\0\051\4\0\0\0\0\0";
	size_t fixed = sizeof(head) - 1 + 2;
	char msg[DNS_MAX_MESSAGE + 1] = { 0 };
	struct dns_question q;

	memcpy(msg, head, sizeof(head) - 1);
	for (size_t len = DNS_MAX_MESSAGE; len <= DNS_MAX_MESSAGE + 1; len++) {
		msg[fixed - 2] = (char)((len - fixed) >> 8);
		msg[fixed - 1] = (char)(len - fixed);
		bool fits = len == DNS_MAX_MESSAGE;
		assert_int_equal(parse(msg, len, &q), fits ? DNS_QUESTION : DNS_REFUSE);
		assert_int_equal(q.rcode, fits ? 0 : FORMERR);
	}
}

/* What an answer contains, as read by the parser below. This parser shares no code with the
 * product: it reads names recursively through pointers, and records by their type. */
struct seen {
	unsigned flags, qd, an, ns, ar;
	char name[300];
	unsigned qtype;
	size_t n_addr;
	size_t addr_len;
	uint8_t addr[64][16];
	unsigned long ttl;
	bool opt;
	unsigned opt_size, opt_rcode;
};

static unsigned be16(const uint8_t *m, size_t at)
{
	return m[at] * 256U + m[at + 1];
}

static size_t see_name(const uint8_t *m, size_t len, size_t at, char *out, unsigned depth)
{
	assert_true(at < len && depth < 8);
	if (m[at] >= 192) {
		(void)see_name(m, len, (m[at] & 63U) * 256U + m[at + 1], out, depth + 1);
		return at + 2;
	}
	if (m[at] == 0) {
		*out = '\0';
		return at + 1;
	}
	assert_true(m[at] < 64 && at + 1 + m[at] < len);
	memcpy(out, m + at + 1, m[at]);
	out[m[at]] = '.';
	return see_name(m, len, at + 1 + m[at], out + m[at] + 1, depth);
}

static size_t see_record(const uint8_t *m, size_t len, size_t at, struct seen *s)
{
	char name[300];

	at = see_name(m, len, at, name, 0);
	assert_true(at + 10 <= len);
	unsigned type = be16(m, at), size = be16(m, at + 8);
	assert_true(at + 10 + size <= len);
	if (type == 41) {
		assert_string_equal(name, "");
		s->opt = true;
		s->opt_size = be16(m, at + 2);
		s->opt_rcode = m[at + 4];
		assert_int_equal(m[at + 5], 0);
	} else {
		assert_string_equal(name, s->name);
		assert_int_equal(type, s->qtype);
		assert_int_equal(be16(m, at + 2), 1);
		assert_int_equal(size, type == 1 ? 4 : 16);
		s->ttl = be16(m, at + 4) * 65536UL + be16(m, at + 6);
		assert_true(s->n_addr < ROWS(s->addr));
		memcpy(s->addr[s->n_addr++], m + at + 10, size);
		s->addr_len = size;
	}
	return at + 10 + size;
}

static void see(const uint8_t *m, size_t len, struct seen *s)
{
	size_t at = 12;

	memset(s, 0, sizeof(*s));
	assert_true(len >= 12);
	assert_int_equal(be16(m, 0), 0xbeef);
	s->flags = be16(m, 2);
	s->qd = be16(m, 4);
	s->an = be16(m, 6);
	s->ns = be16(m, 8);
	s->ar = be16(m, 10);
	assert_true(s->qd <= 1 && s->ns == 0);
	if (s->qd == 1) {
		at = see_name(m, len, at, s->name, 0);
		s->qtype = be16(m, at);
		at += 4;
	}
	for (unsigned i = 0; i < s->an + s->ar; i++) {
		at = see_record(m, len, at, s);
	}
	assert_int_equal(s->n_addr, s->an);
	assert_int_equal(at, len);
}

static size_t answer(const char *msg, size_t len, uint8_t rcode, const uint8_t *addr, size_t n,
                     size_t room, struct seen *ret)
{
	struct dns_question q;
	auto_free uint8_t *out = malloc(room);

	assert_non_null(out);
	assert_int_not_equal(parse(msg, len, &q), DNS_DROP);
	size_t got = dns_answer((const uint8_t *)msg, &q, rcode != 0 ? rcode : q.rcode, addr, n,
	                        300, out, room);
	assert_true(got <= room);
	if (got > 0) {
		see(out, got, ret);
		/* The answer repeats the letter case of the question (DNS 0x20). */
		assert_memory_equal(out + 12, msg + 12, q.question_len);
	}
	return got;
}

#define QR 0x8000
#define TC 0x0200
#define RD 0x0100
#define RA 0x0080

static void test_answer_addresses(void **state)
{
	static const uint8_t four[] = { 198, 18, 0, 1, 198, 18, 0, 2 };
	static const uint8_t six[16] = { 0xfd, 1, 2, 3, [15] = 9 };
	struct seen s;

	size_t len = answer(RAW(ONE "\003ApI\003cOm\0" A_IN), 0, four, 2, 512, &s);
	assert_int_equal(len, 12 + 13 + 2 * 16);
	assert_string_equal(s.name, "ApI.cOm.");
	assert_int_equal(s.flags, QR | RD | RA);
	assert_int_equal(s.n_addr, 2);
	assert_memory_equal(s.addr[0], four, 4);
	assert_memory_equal(s.addr[1], four + 4, 4);
	assert_int_equal(s.ttl, 300);
	assert_false(s.opt);

	(void)answer(RAW(ONE_EDNS NAME "\0\034\0\001" OPT("\4\0")), 0, six, 1, 512, &s);
	assert_int_equal(s.n_addr, 1);
	assert_int_equal(s.addr_len, 16);
	assert_memory_equal(s.addr[0], six, 16);
	assert_true(s.opt && s.opt_size == 1232 && s.opt_rcode == 0);

	/* the RD bit is copied from the question; the name is the root */
	(void)answer(RAW("\276\357\0\0\0\1\0\0\0\0\0\0\0" A_IN), 0, four, 1, 512, &s);
	assert_int_equal(s.flags, QR | RA);
	assert_string_equal(s.name, "");
	assert_int_equal(s.n_addr, 1);
}

static void test_answer_nothing(void **state)
{
	static const uint8_t four[4] = { 198, 18, 0, 1 };
	struct seen s;

	(void)answer(RAW(PLAIN), 3, NULL, 0, 512, &s);
	assert_int_equal(s.flags, QR | RD | RA | 3);
	assert_int_equal(s.an, 0);
	(void)answer(RAW(PLAIN), 0, NULL, 0, 512, &s);
	assert_int_equal(s.flags, QR | RD | RA);
	assert_int_equal(s.an, 0);
	/* an answer with NXDOMAIN, or for another type of record, has no address */
	(void)answer(RAW(PLAIN), 3, four, 1, 512, &s);
	assert_int_equal(s.an, 0);
	(void)answer(RAW(ONE NAME "\0\101\0\001"), 0, four, 1, 512, &s);
	assert_int_equal(s.an, 0);
	assert_int_equal(s.flags, QR | RD | RA);
	/* answers to refused messages */
	for (size_t i = 0; i < ROWS(REFUSED_ROWS); i++) {
		(void)answer(REFUSED_ROWS[i].msg, REFUSED_ROWS[i].len, 0, four, 1, 512, &s);
		assert_int_equal(s.flags & 0x0f, REFUSED_ROWS[i].rcode & 0x0f);
		assert_int_equal(s.flags & QR, QR);
		assert_int_equal(s.flags & 0x7800,
		                 (unsigned char)REFUSED_ROWS[i].msg[2] << 8 & 0x7800);
		assert_int_equal(s.qd, REFUSED_ROWS[i].question);
		assert_int_equal(s.an, 0);
		assert_int_equal(s.opt_rcode, REFUSED_ROWS[i].rcode >> 4);
	}
}

/* For each size of the buffer, the answer has as many addresses as fit. */
static void test_answer_room(void **state)
{
	static const char asks[][64] = { PLAIN, ONE_EDNS NAME A_IN OPT("\4\0") };
	static const size_t ask_len[] = { sizeof(PLAIN) - 1,
		                          sizeof(ONE_EDNS NAME A_IN OPT("\4\0")) - 1 };
	uint8_t addr[60 * 4];
	size_t base = sizeof(PLAIN) - 1;
	struct seen s;

	for (size_t i = 0; i < sizeof(addr); i++) {
		addr[i] = (uint8_t)i;
	}
	for (size_t k = 0; k < 2; k++) {
		for (size_t room = 12; room < 1100; room++) {
			size_t len = answer(asks[k], ask_len[k], 0, addr, 60, room, &s);
			if (room < base) {
				assert_int_equal(len, 0);
				continue;
			}
			size_t opt = k == 1 && room >= base + 11 ? 11 : 0;
			size_t fit = (room - base - opt) / 16;
			fit = fit > 60 ? 60 : fit;
			assert_int_equal(s.n_addr, fit);
			assert_int_equal((s.flags & TC) != 0, fit < 60);
			assert_int_equal(s.opt, opt > 0);
			assert_int_equal(len, base + opt + 16 * fit);
			assert_memory_equal(s.addr[fit > 0 ? fit - 1 : 0],
			                    fit > 0 ? addr + 4 * (fit - 1) : s.addr[0], 4);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_questions),      cmocka_unit_test(test_refused),
		cmocka_unit_test(test_dropped),        cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_too_long),       cmocka_unit_test(test_answer_addresses),
		cmocka_unit_test(test_answer_nothing), cmocka_unit_test(test_answer_room),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
