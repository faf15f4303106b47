/* tls_hello.h - finds the server name in a ClientHello, the first bytes of a TLS connection. The
 * bytes may arrive in pieces of any size. The ClientHello may use several records, may contain
 * GREASE, and may have up to TLS_HELLO_MAX bytes. */
#ifndef WIRE_TLS_HELLO_H
#define WIRE_TLS_HELLO_H

#include <stddef.h>
#include <stdint.h>

#define TLS_HELLO_MAX (64 * 1024 + 1024)
#define TLS_MAX_NAME  254

enum tls_verdict {
	TLS_MORE,     /* more bytes are needed */
	TLS_NAME,     /* *ret_name is the SNI: in lower case, without the final dot, only letters,
	                 digits, '-' and '_' */
	TLS_NO_NAME,  /* a ClientHello without server_name */
	TLS_BAD_NAME, /* the extension has several names, an empty one, an address, or bytes that no
	                 host name has */
	TLS_ECH,      /* encrypted_client_hello (0xfe0d) or its predecessor ESNI (0xffce), real or
	                 GREASE; *ret_name is the SNI if there is one, otherwise "" */
	TLS_NOT_TLS,  /* the first bytes are not a TLS handshake record with a ClientHello */
	TLS_BROKEN, /* it begins as a ClientHello, but is malformed or longer than TLS_HELLO_MAX */
};

/* `data` must begin with the first byte of the connection. If more bytes follow later, the verdict
 * changes only from TLS_MORE to another one; with TLS_HELLO_MAX bytes it is never TLS_MORE. A bad
 * name is TLS_BAD_NAME even with ECH. The extension numbers of the ECH drafts count as ECH.
 * ret_name is written only with TLS_NAME and TLS_ECH. */
enum tls_verdict tls_hello_parse(const uint8_t *data, size_t len, char ret_name[TLS_MAX_NAME]);

#endif
