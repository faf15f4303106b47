/* net_hello.h - the first bytes of every bench connection, for every kind of rule.
 *
 * They are a ClientHello with the server's name: a tls rule allows it, and a raw rule allows any
 * bytes. Its 32 random bytes contain the request to the server: one byte of command, then a
 * count. */
#ifndef BENCH_NET_HELLO_H
#define BENCH_NET_HELLO_H

#include <stdint.h>
#include <string.h>

#define HELLO_NAME     "bench.example.test"
#define HELLO_NAME_LEN (sizeof(HELLO_NAME) - 1)
/* the random bytes come after 5 bytes of record header, 4 of handshake header, 2 of version */
#define HELLO_RANDOM 11
#define HELLO_LEN    (HELLO_RANDOM + 32 + 1 + 4 + 2 + 2 + 9 + HELLO_NAME_LEN)

enum hello_command {
	HELLO_ECHO = 'E', /* the server sends one byte at once, and then everything back */
	HELLO_DOWN = 'D', /* the server sends `count` bytes */
	/* the client sends `count` bytes; the server sends one byte when it has them all */
	HELLO_UP = 'U',
};

static inline void hello_put16(uint8_t *at, size_t v)
{
	at[0] = (uint8_t)(v >> 8);
	at[1] = (uint8_t)v;
}

static inline void hello_make(uint8_t out[HELLO_LEN], enum hello_command command, uint64_t count)
{
	uint8_t *p = out;

	memset(out, 0, HELLO_LEN);
	p[0] = 22; /* handshake */
	hello_put16(p + 1, 0x0301);
	hello_put16(p + 3, HELLO_LEN - 5);
	p[5] = 1; /* ClientHello */
	hello_put16(p + 7, HELLO_LEN - 9);
	hello_put16(p + 9, 0x0303);
	p[HELLO_RANDOM] = (uint8_t)command;
	memcpy(p + HELLO_RANDOM + 1, &count, sizeof(count));
	p += HELLO_RANDOM + 32 + 1; /* the session id is empty */
	hello_put16(p, 2);
	hello_put16(p + 2, 0x1301);
	p[4] = 1; /* one compression method: none */
	p += 6;
	hello_put16(p, HELLO_NAME_LEN + 9);
	p += 2;
	hello_put16(p + 2, HELLO_NAME_LEN + 5); /* extension 0: server_name */
	hello_put16(p + 4, HELLO_NAME_LEN + 3);
	hello_put16(p + 7, HELLO_NAME_LEN);
	memcpy(p + 9, HELLO_NAME, HELLO_NAME_LEN);
}

#endif
