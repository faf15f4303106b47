/* dns.h - questions in, answers out: DNS messages as bytes, no sockets.
 *
 * The skill's resolver is the peer: every byte is hostile. Only what a stub
 * resolver sends is understood; everything else has a well-defined answer. */
#ifndef WIRE_DNS_H
#define WIRE_DNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DNS_MAX_NAME    254  /* dotted text of a name, with its NUL */
#define DNS_MAX_MESSAGE 4096 /* longer questions are not read */

enum dns_type { DNS_A = 1, DNS_AAAA = 28, DNS_SVCB = 64, DNS_HTTPS = 65, DNS_OTHER = 0 };

enum dns_verdict {
	DNS_QUESTION, /* one question of class IN: see struct dns_question */
	DNS_REFUSE,   /* answer with `rcode` and nothing else (NOTIMP, FORMERR, REFUSED, BADVERS;
	               * NXDOMAIN: a name that no host has): dns_answer() without addresses */
	DNS_DROP,     /* not even a header, or itself an answer: say nothing */
};

struct dns_question {
	uint16_t id;
	enum dns_type type;
	uint16_t qtype;          /* as sent */
	char name[DNS_MAX_NAME]; /* lower case, no final dot; "" is the root; with
	                          * DNS_REFUSE for the trace only: '?' for what is no text */
	bool edns;               /* an OPT record was there */
	uint16_t udp_size;       /* what the client can take, 512..1232 */
	uint8_t rcode;           /* with DNS_REFUSE */
	size_t question_len;     /* bytes of the question section as sent (0x20 kept) */
};

/* Reads a message of len bytes. Never reads past it, follows no compression
 * pointer in a question, refuses label bytes that are not printable ASCII
 * without '.' (a name with them can match no rule). *ret is filled except with
 * DNS_DROP. */
enum dns_verdict dns_parse(const uint8_t *msg, size_t len, struct dns_question *ret);

/* Writes the answer to `msg` into out (room >= 512). addr: n_addr addresses of
 * 4 (A) or 16 (AAAA) bytes. rcode 3 is NXDOMAIN (with no addresses), 0 with no
 * addresses is an empty answer. Echoes the question byte for byte (0x20),
 * an OPT record if there was one, RA and RD; TC if it did not fit. Returns the
 * length, 0 if room is too small even for the header and question. msg and q are
 * those of one dns_parse(); over UDP the caller's room is at most q->udp_size.
 * Addresses are left out where rcode is not 0 or the type is neither A nor AAAA. */
size_t dns_answer(const uint8_t *msg, const struct dns_question *q, uint8_t rcode,
                  const uint8_t *addr, size_t n_addr, uint32_t ttl, uint8_t *out, size_t room);

#endif
