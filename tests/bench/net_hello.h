/* net_hello.h - what a bench connection begins with, on every kind of rule.
 *
 * A ClientHello with the server's name: a tls rule lets it through, and a raw
 * rule does not care. Its 32 random bytes say what the server shall do: one
 * byte of command, then a count. */
#ifndef BENCH_NET_HELLO_H
#define BENCH_NET_HELLO_H

#include <stdint.h>
#include <string.h>

#define HELLO_NAME     "bench.example.test"
#define HELLO_NAME_LEN (sizeof(HELLO_NAME) - 1)
#define HELLO_RANDOM   11 /* record header 5, handshake header 4, version 2 */
#define HELLO_LEN      (HELLO_RANDOM + 32 + 1 + 4 + 2 + 2 + 9 + HELLO_NAME_LEN)

enum hello_command {
	HELLO_ECHO = 'E', /* one byte at once, then everything back */
	HELLO_DOWN = 'D', /* the server sends `count` bytes */
	HELLO_UP = 'U',   /* the client sends `count` bytes; one byte when all are there */
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
	p += HELLO_RANDOM + 32 + 1; /* no session id */
	hello_put16(p, 2);
	hello_put16(p + 2, 0x1301);
	p[4] = 1; /* one compression: none */
	p += 6;
	hello_put16(p, HELLO_NAME_LEN + 9);
	p += 2;
	hello_put16(p + 2, HELLO_NAME_LEN + 5); /* extension 0: server_name */
	hello_put16(p + 4, HELLO_NAME_LEN + 3);
	hello_put16(p + 7, HELLO_NAME_LEN);
	memcpy(p + 9, HELLO_NAME, HELLO_NAME_LEN);
}

#endif
