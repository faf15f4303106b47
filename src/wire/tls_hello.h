/* tls_hello.h - the server name of a ClientHello, from the first bytes of a
 * connection. Handles records split anywhere, a handshake message over
 * several records, GREASE, and sizes up to TLS_HELLO_MAX. */
#ifndef WIRE_TLS_HELLO_H
#define WIRE_TLS_HELLO_H

#include <stddef.h>
#include <stdint.h>

#define TLS_HELLO_MAX (64 * 1024 + 1024)
#define TLS_MAX_NAME  254

enum tls_verdict {
	TLS_MORE,     /* not enough bytes yet */
	TLS_NAME,     /* *ret_name is the SNI: lower case, no final dot, LDH and '_' */
	TLS_NO_NAME,  /* a ClientHello without server_name */
	TLS_BAD_NAME, /* more than one name, an empty one, an address, bytes no host name has */
	TLS_ECH, /* encrypted_client_hello (0xfe0d) or its forerunner ESNI (0xffce), GREASE or real;
	          * *ret_name is filled as for TLS_NAME where there is one, else "" */
	TLS_NOT_TLS, /* the first bytes are no TLS handshake record with a ClientHello */
	TLS_BROKEN,  /* it began as one and is malformed, or is longer than TLS_HELLO_MAX */
};

/* data: the connection's bytes from the first one on. The verdict of a prefix is
 * TLS_MORE or that of the whole; never TLS_MORE with TLS_HELLO_MAX bytes. A bad
 * name is TLS_BAD_NAME with or without ECH. Early numbers of the ECH drafts count
 * as ECH. ret_name is written with TLS_NAME and TLS_ECH only. */
enum tls_verdict tls_hello_parse(const uint8_t *data, size_t len, char ret_name[TLS_MAX_NAME]);

#endif
