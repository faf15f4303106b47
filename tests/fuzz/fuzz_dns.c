/* Parses a DNS message of arbitrary bytes: the answer that we make to it must fit into its buffer,
 * must repeat the question, and must not be accepted as a question. */
#include <string.h>

#include "fuzz.h"
#include "base/utf8.h"
#include "wire/dns.h"

/* The name in a question that is accepted must be printable ASCII. The name in a refused question
 * may have other characters. */
static void check_name(const struct dns_question *q)
{
	const char *label = q->name;
	const char *end = memchr(q->name, '\0', sizeof(q->name));

	must(end != NULL);
	for (const char *p = q->name; p < end;) {
		uint32_t c = 0;
		size_t n = utf8_decode(p, (size_t)(end - p), &c);
		must(n == 1 || (n > 1 && q->rcode != 0));
		must(c >= ' ' && c != 0x7f && (c < 'A' || c > 'Z'));
		p += n;
	}
	while (*label != '\0') {
		size_t n = strcspn(label, ".");
		must(n > 0 && n <= 63);
		label += n;
		must(*label == '\0' || label[1] != '\0'); /* the name must not end with a dot */
		label += *label == '.';
	}
	must(q->question_len == 0 ||
	     q->question_len == (size_t)(end - q->name) + (end > q->name ? 2 : 1) + 4);
}

static void check_answer(const uint8_t *msg, const struct dns_question *q, uint8_t rcode,
                         size_t n_addr, size_t room)
{
	static const uint8_t addr[64 * 16];
	struct dns_question again;
	uint8_t *out = malloc(room);

	must(out != NULL);
	size_t len = dns_answer(msg, q, rcode, addr, n_addr, 60, out, room);
	must(len <= room && (len == 0) == (room < 12 + q->question_len));
	if (len > 0) {
		must(dns_parse(out, len, &again) == DNS_DROP);
		must(memcmp(out, msg, 2) == 0 && (out[3] & 0x0f) == (rcode & 0x0f));
		must(memcmp(out + 12, msg + 12, q->question_len) == 0);
		must(q->question_len == 0 || (out[4] == 0 && out[5] == 1));
	}
	free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dns_question q;
	enum dns_verdict v = dns_parse(data, size, &q);

	if (v == DNS_DROP) {
		must(size < 12 || (data[2] & 0x80) != 0);
		return 0;
	}
	must((v == DNS_REFUSE) == (q.rcode != 0));
	must(q.udp_size >= 512 && q.udp_size <= 1232 && q.question_len <= size - 12);
	must(q.type == DNS_OTHER || q.type == q.qtype);
	must(v == DNS_REFUSE || (q.question_len > 0 && strchr(q.name, '?') == NULL) ||
	     memchr(data + 12, '?', q.question_len) != NULL);
	check_name(&q);
	check_answer(data, &q, q.rcode, size % 64, q.udp_size);
	check_answer(data, &q, 3, 0, 512);
	check_answer(data, &q, 0, 64, 12 + size % 400);
	return 0;
}
