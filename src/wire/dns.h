/* dns.h - parses DNS questions and writes answers, without sockets.
 *
 * The peer is the skill's resolver: every byte may be hostile. Only the messages of a stub resolver
 * are understood; everything else gets a well-defined answer. */
#ifndef WIRE_DNS_H
#define WIRE_DNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DNS_MAX_NAME    254  /* the dotted text of a name, with its NUL */
#define DNS_MAX_MESSAGE 4096 /* longer questions are not read */

enum dns_type { DNS_A = 1, DNS_AAAA = 28, DNS_SVCB = 64, DNS_HTTPS = 65, DNS_OTHER = 0 };

enum dns_verdict {
	DNS_QUESTION, /* one question of class IN; see struct dns_question */
	DNS_REFUSE,   /* answer with `rcode` only (NOTIMP, FORMERR, REFUSED, BADVERS; NXDOMAIN for a
	                 name that no host can have): dns_answer() without addresses */
	DNS_DROP,     /* too short for a header, or itself an answer: do not answer */
};

struct dns_question {
	uint16_t id;
	enum dns_type type;
	uint16_t qtype;          /* as sent */
	char name[DNS_MAX_NAME]; /* in lower case without the final dot; "" is the root. With
	                            DNS_REFUSE only for the trace, with '?' for bytes that are not
	                            text */
	bool edns;               /* it has an OPT record */
	uint16_t udp_size;       /* the size that the client accepts, 512..1232 */
	uint8_t rcode;           /* only with DNS_REFUSE */
	size_t question_len; /* length of the question section, which is echoed as sent (0x20) */
};

/* Parses a message of len bytes. Never reads past it, follows no compression pointer in a question,
 * and refuses labels with bytes that are not printable ASCII or are '.', since no rule can match
 * them. *ret is filled except with DNS_DROP. */
enum dns_verdict dns_parse(const uint8_t *msg, size_t len, struct dns_question *ret);

/* Writes the answer to `msg` into out (room >= 512). addr has n_addr addresses of 4 (A) or 16
 * (AAAA) bytes. They are left out if rcode is not 0 or the type is neither A nor AAAA. rcode 3 is
 * NXDOMAIN; rcode 0 without addresses is an empty answer. Echoes the question byte for byte (0x20),
 * RA, RD, and an OPT record if the question had one. Sets TC if the answer does not fit. Returns
 * the length, or 0 if not even header and question fit. msg and q must come from the same
 * dns_parse(). Over UDP, room must be at most q->udp_size. */
size_t dns_answer(const uint8_t *msg, const struct dns_question *q, uint8_t rcode,
                  const uint8_t *addr, size_t n_addr, uint32_t ttl, uint8_t *out, size_t room);

#endif
