/* dns.h - parses DNS questions and writes answers, without sockets.
 *
 * The questions come from the skill: every byte may be hostile. Only the messages of a stub
 * resolver are understood; every other message is refused with a fixed code or dropped. */
#ifndef WIRE_DNS_H
#define WIRE_DNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DNS_MAX_NAME    254  /* the dotted text of a name, with its NUL */
#define DNS_MAX_MESSAGE 4096 /* longer questions are not read */

enum dns_type { DNS_A = 1, DNS_AAAA = 28, DNS_SVCB = 64, DNS_HTTPS = 65, DNS_OTHER = 0 };

enum dns_verdict {
	DNS_QUESTION, /* the message has one question of class IN, which is in *ret */
	DNS_REFUSE,   /* send what dns_answer() returns for `rcode` without addresses. The codes are
	                 NOTIMP, FORMERR, REFUSED, BADVERS, and NXDOMAIN (for a name that no host can
	                 have) */
	DNS_DROP, /* the message is too short for a header, or is itself an answer: send nothing */
};

struct dns_question {
	uint16_t id;
	enum dns_type type;
	uint16_t qtype;          /* the type that the client asks for */
	char name[DNS_MAX_NAME]; /* in lower case without the final dot; "" is the root. With
	                            DNS_REFUSE it is only for the trace, and bytes that are not text
	                            are '?' */
	bool edns;               /* the message has an OPT record */
	uint16_t udp_size;       /* the size that the client accepts, 512 to 1232 */
	uint8_t rcode;           /* only with DNS_REFUSE */
	size_t question_len; /* length of the question section, which the answer repeats byte for
	                        byte */
};

/* Parses a message of len bytes. Follows no compression pointer in a question. Refuses labels that
 * contain '.' or bytes that are not printable ASCII, because no rule can match them. *ret is filled
 * unless the result is DNS_DROP. */
enum dns_verdict dns_parse(const uint8_t *msg, size_t len, struct dns_question *ret);

/* Writes the answer to `msg` into out; room should be at least 512 and, over UDP, must be at most
 * q->udp_size. `addr` has n_addr addresses of 4 (A) or 16 (AAAA) bytes; they are left out if rcode
 * is not 0 or the type is neither A nor AAAA. rcode 3 is NXDOMAIN; rcode 0 without addresses is an
 * empty answer. The answer repeats the question byte for byte (a resolver may check its upper and
 * lower case), sets RA, copies RD, and has an OPT record if the question had one. If not all
 * addresses fit, TC is set. Returns the length, or 0 if not even header and question fit. `q` must
 * be the result of dns_parse() for `msg`. */
size_t dns_answer(const uint8_t *msg, const struct dns_question *q, uint8_t rcode,
                  const uint8_t *addr, size_t n_addr, uint32_t ttl, uint8_t *out, size_t room);

#endif
