/* http1_cases.h - requests of skills and the checker's answers, for test_http1.c. */
#ifndef TESTS_UNIT_HTTP1_CASES_H
#define TESTS_UNIT_HTTP1_CASES_H

#include <stddef.h>

#include "../http1_drive.h"

#define CRLF    "\r\n"
#define END     CRLF CRLF
#define GET     "GET / HTTP/1.1" CRLF
#define HOST    "Host: a.test" CRLF
#define POST    "POST / HTTP/1.1" CRLF HOST
#define CHUNKED POST "Transfer-Encoding: chunked" END
#define NEXT    GET "Host: next.test" END
#define ALL     ((size_t)-1)
#define L63     "abcdefghijklmnopqrstuvwxyz-abcdefghijklmnopqrstuvwxyz-012345678"

struct test_case {
	const char *name;
	const char *bytes;
	const char *hosts;   /* hosts that the checker reports: "a.test b.test:81" */
	size_t passed;       /* bytes that pass; ALL: everything */
	enum http1_deny why; /* HTTP1_OK: not denied */
	enum answer answer;  /* the server's answer to an upgrade */
	size_t len;          /* 0: strlen(bytes) */
};

/* The last arguments of DENIED_AT are the bytes that pass, and then the bytes that do not. */
#define PASSES(label, hosts, ...)                                                                  \
	{                                                                                          \
		label, __VA_ARGS__, hosts, ALL, HTTP1_OK, 0, 0                                     \
	}
#define DENIED(label, reason, ...)                                                                 \
	{                                                                                          \
		label, __VA_ARGS__, "", 0, reason, 0, 0                                            \
	}
#define DENIED_AT(label, hosts, reason, good, bad)                                                 \
	{                                                                                          \
		label, good bad, hosts, sizeof(good) - 1, reason, 0, 0                             \
	}
#define HEADER(label, reason, line)      DENIED(label, reason, GET HOST line END)
#define HEADER_OK(label, line)           PASSES(label, "a.test", GET HOST line END)
#define HOSTLINE(label, reason, value)   DENIED(label, reason, GET "Host:" value END)
#define HOSTLINE_OK(label, host, value)  PASSES(label, host, GET "Host:" value END)
#define CHUNKS(label, reason, good, bad) DENIED_AT(label, "a.test", reason, CHUNKED good, bad)

static const struct test_case REQUEST_LINES[] = {
	PASSES("plain", "a.test", GET HOST CRLF),
	PASSES("1.0", "a.test", "GET / HTTP/1.0" CRLF HOST CRLF),
	PASSES("query", "a.test", "GET /x?y=%20#z HTTP/1.1" CRLF HOST CRLF),
	PASSES("method of one's own", "a.test", "M-SEARCH /x HTTP/1.1" CRLF HOST CRLF),
	PASSES("two slashes are a path", "a.test", "GET //b.test/ HTTP/1.1" CRLF HOST CRLF),
	PASSES("asterisk", "a.test", "OPTIONS * HTTP/1.1" CRLF HOST CRLF),
	DENIED("asterisk of GET", HTTP1_NOT_HTTP, "GET * HTTP/1.1" CRLF HOST CRLF),
	DENIED("asterisk and more", HTTP1_NOT_HTTP, "OPTIONS *x HTTP/1.1" CRLF HOST CRLF),
	DENIED("two spaces", HTTP1_NOT_HTTP, "GET  / HTTP/1.1" CRLF HOST CRLF),
	DENIED("two spaces, later", HTTP1_NOT_HTTP, "GET /  HTTP/1.1" CRLF HOST CRLF),
	DENIED("space at the end", HTTP1_NOT_HTTP, "GET / HTTP/1.1 " CRLF HOST CRLF),
	DENIED("tab", HTTP1_NOT_HTTP, "GET\t/ HTTP/1.1" CRLF HOST CRLF),
	DENIED("tab, later", HTTP1_NOT_HTTP, "GET /\tHTTP/1.1" CRLF HOST CRLF),
	DENIED("space first", HTTP1_NOT_HTTP, " GET / HTTP/1.1" CRLF HOST CRLF),
	DENIED("empty line first", HTTP1_NOT_HTTP, CRLF GET HOST CRLF),
	DENIED("no-break space", HTTP1_NOT_HTTP, "GET /\xa0x HTTP/1.1" CRLF HOST CRLF),
	DENIED("next line byte", HTTP1_BAD_HEADER, "GET /\x85x HTTP/1.1" CRLF HOST CRLF),
	DENIED("method with a colon", HTTP1_NOT_HTTP, "Host: a.test" CRLF),
	DENIED("method too long", HTTP1_NOT_HTTP, "GGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGG"),
	PASSES("longest method", "a.test",
	       "GGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGG / HTTP/1.1" CRLF HOST CRLF),
	DENIED("another protocol", HTTP1_NOT_HTTP, "SSH-2.0-x y" CRLF),
	DENIED("TLS", HTTP1_NOT_HTTP, "\x16\x03\x01"),
	DENIED("a relative target", HTTP1_NOT_HTTP, "GET x HTTP/1.1" CRLF HOST CRLF),
	DENIED("0.9", HTTP1_VERSION, "GET /" CRLF HOST CRLF),
	DENIED("0.9 with a space", HTTP1_VERSION, "GET / " CRLF HOST CRLF),
	DENIED("1.2", HTTP1_VERSION, "GET / HTTP/1.2" CRLF HOST CRLF),
	DENIED("2.0", HTTP1_VERSION, "GET / HTTP/2.0" CRLF HOST CRLF),
	DENIED("01.1", HTTP1_VERSION, "GET / HTTP/01.1" CRLF HOST CRLF),
	DENIED("lower case version", HTTP1_VERSION, "GET / http/1.1" CRLF HOST CRLF),
	DENIED("no version at all", HTTP1_NOT_HTTP, "GET / FTP/1.1" CRLF HOST CRLF),
	DENIED("CONNECT", HTTP1_CONNECT, "CONNECT a.test:443 HTTP/1.1" CRLF HOST CRLF),
	DENIED("connect", HTTP1_CONNECT, "connect /x HTTP/1.1" CRLF HOST CRLF),
	DENIED("authority-form", HTTP1_NOT_HTTP, "GET a.test:80 HTTP/1.1" CRLF HOST CRLF),
	DENIED("preface", HTTP1_H2, "PRI * HTTP/2.0" END "SM" END),
	DENIED("preface in disguise", HTTP1_H2, "PRI / HTTP/1.1" CRLF HOST CRLF),
	DENIED_AT("preface, later", "a.test", HTTP1_H2, GET HOST CRLF, "PRI * HTTP/2.0" END),
};

static const struct test_case ABSOLUTE[] = {
	PASSES("same", "a.test", "GET http://a.test/x HTTP/1.1" CRLF HOST CRLF),
	PASSES("no path", "a.test", "GET http://a.test HTTP/1.1" CRLF HOST CRLF),
	PASSES("case and dot", "a.test", "GET HTTP://A.Test./x HTTP/1.1" CRLF HOST CRLF),
	PASSES("default port", "a.test", "GET http://a.test:80/ HTTP/1.1" CRLF HOST CRLF),
	PASSES("a port", "a.test:81", "GET http://a.test:81/ HTTP/1.1" CRLF "Host: a.test:81" END),
	PASSES("IPv6", "::1", "GET http://[::1]/ HTTP/1.1" CRLF "Host: [::1]" END),
	DENIED("another", HTTP1_TWO_HOSTS, "GET http://b.test/ HTTP/1.1" CRLF HOST CRLF),
	DENIED("begins alike", HTTP1_TWO_HOSTS, "GET http://a.test.b/ HTTP/1.1" CRLF HOST CRLF),
	DENIED("another port", HTTP1_TWO_HOSTS, "GET http://a.test:81/ HTTP/1.1" CRLF HOST CRLF),
	DENIED("userinfo", HTTP1_BAD_HOST, "GET http://a.test@b.test/ HTTP/1.1" CRLF HOST CRLF),
	DENIED("userinfo that is it", HTTP1_BAD_HOST,
	       "GET http://b.test@a.test/ HTTP/1.1" CRLF HOST CRLF),
	DENIED("backslash", HTTP1_BAD_HOST, "GET http://a.test\\@b.test/ HTTP/1.1" CRLF HOST CRLF),
	DENIED("question mark", HTTP1_BAD_HOST,
	       "GET http://a.test?@b.test/ HTTP/1.1" CRLF HOST CRLF),
	DENIED("fragment", HTTP1_BAD_HOST, "GET http://a.test#@b.test/ HTTP/1.1" CRLF HOST CRLF),
	DENIED("percent", HTTP1_BAD_HOST, "GET http://a%2etest/ HTTP/1.1" CRLF HOST CRLF),
	DENIED("nothing", HTTP1_BAD_HOST, "GET http:/// HTTP/1.1" CRLF HOST CRLF),
	DENIED("https", HTTP1_NOT_HTTP, "GET https://a.test/ HTTP/1.1" CRLF HOST CRLF),
	DENIED("another scheme", HTTP1_NOT_HTTP, "GET ftp://a.test/ HTTP/1.1" CRLF HOST CRLF),
	DENIED("one slash", HTTP1_NOT_HTTP, "GET http:/a.test/ HTTP/1.1" CRLF HOST CRLF),
	DENIED("no Host line", HTTP1_NO_HOST, "GET http://a.test/ HTTP/1.1" END),
};

static const struct test_case HOSTS[] = {
	HOSTLINE_OK("plain", "a.test", " a.test"),
	HOSTLINE_OK("no space", "a.test", "a.test"),
	HOSTLINE_OK("space around", "a.test", " \t a.test \t"),
	HOSTLINE_OK("normal form", "api.example.test", " API.Example.TEST."),
	HOSTLINE_OK("port", "a.test:8080", " a.test:8080"),
	HOSTLINE_OK("dot and port", "a.test:65535", " A.test.:65535"),
	HOSTLINE_OK("underscore, digits", "_x.1-2.test", " _x.1-2.test"),
	HOSTLINE_OK("IPv4", "127.0.0.1:80", " 127.0.0.1:80"),
	HOSTLINE_OK("IPv6", "2001:db8::1", " [2001:DB8::1]"),
	HOSTLINE_OK("IPv6 and port", "::ffff:1.2.3.4:81", " [::ffff:1.2.3.4]:81"),
	HOSTLINE_OK("label of 63", L63 ".test", " " L63 ".test"),
	HOSTLINE_OK("name of 253",
	            L63 "." L63 "." L63
	                ".abcdefghijklmnopqrstuvwxyz-abcdefghijklmnopqrstuvwxyz-0123456",
	            " " L63 "." L63 "." L63
	            ".abcdefghijklmnopqrstuvwxyz-abcdefghijklmnopqrstuvwxyz-0123456."),
	DENIED("none", HTTP1_NO_HOST, GET CRLF),
	DENIED("none in 1.0", HTTP1_NO_HOST, "GET / HTTP/1.0" END),
	HOSTLINE("empty", HTTP1_NO_HOST, ""),
	HOSTLINE("only space", HTTP1_NO_HOST, " \t "),
	HOSTLINE("label of 64", HTTP1_BAD_HOST, " x" L63 ".test"),
	HOSTLINE("name of 254", HTTP1_BAD_HOST,
	         " " L63 "." L63 "." L63
	         ".abcdefghijklmnopqrstuvwxyz-abcdefghijklmnopqrstuvwxyz-01234567"),
	HOSTLINE("userinfo", HTTP1_BAD_HOST, " a.test@b.test"),
	HOSTLINE("userinfo with port", HTTP1_BAD_HOST, " a.test:80@b.test"),
	HOSTLINE("list", HTTP1_BAD_HOST, " a.test, b.test"),
	HOSTLINE("space within", HTTP1_BAD_HOST, " a.test b.test"),
	HOSTLINE("path", HTTP1_BAD_HOST, " a.test/"),
	HOSTLINE("scheme", HTTP1_BAD_HOST, " http://a.test"),
	HOSTLINE("two final dots", HTTP1_BAD_HOST, " a.test.."),
	HOSTLINE("only a dot", HTTP1_BAD_HOST, " ."),
	HOSTLINE("empty label", HTTP1_BAD_HOST, " a..test"),
	HOSTLINE("dot first", HTTP1_BAD_HOST, " .a.test"),
	HOSTLINE("8 bit", HTTP1_BAD_HOST, " \xc3\xa4.test"),
	HOSTLINE("percent", HTTP1_BAD_HOST, " a%2etest"),
	HOSTLINE("empty port", HTTP1_BAD_HOST, " a.test:"),
	HOSTLINE("port 0", HTTP1_BAD_HOST, " a.test:0"),
	HOSTLINE("port 080", HTTP1_BAD_HOST, " a.test:080"),
	HOSTLINE("port 65536", HTTP1_BAD_HOST, " a.test:65536"),
	HOSTLINE("port +80", HTTP1_BAD_HOST, " a.test:+80"),
	HOSTLINE("port x", HTTP1_BAD_HOST, " a.test:80x"),
	HOSTLINE("two ports", HTTP1_BAD_HOST, " a.test:80:80"),
	HOSTLINE("bare IPv6", HTTP1_BAD_HOST, " ::1"),
	HOSTLINE("open bracket", HTTP1_BAD_HOST, " [::1"),
	HOSTLINE("empty brackets", HTTP1_BAD_HOST, " []"),
	HOSTLINE("name in brackets", HTTP1_BAD_HOST, " [a.test]"),
	HOSTLINE("zone", HTTP1_BAD_HOST, " [fe80::1%25lo]"),
	HOSTLINE("text behind the bracket", HTTP1_BAD_HOST, " [::1]a.test"),
	HEADER("twice, the same", HTTP1_TWO_HOSTS, "Host: a.test"),
	HEADER("twice, another", HTTP1_TWO_HOSTS, "Host: b.test"),
	HEADER("twice, other case", HTTP1_TWO_HOSTS, "hOST: b.test"),
	HEADER("twice, the second empty", HTTP1_TWO_HOSTS, "Host:"),
	HEADER_OK("a name that only contains it", "X-Host: b.test" CRLF "Hosts: b.test"),
};

static const struct test_case HEADERS[] = {
	HEADER_OK("any", "X: y" CRLF "!#$%&'*+-.^_`|~09az: z" CRLF "Empty:" CRLF "E: \t"),
	HEADER_OK("8 bit in a value", "X: \xc3\xa4\xff"),
	HEADER_OK("tab in a value", "X: a\tb"),
	HEADER("folded", HTTP1_FOLDED, "X: y" CRLF " z"),
	HEADER("folded by a tab", HTTP1_FOLDED, "X: y" CRLF "\tz"),
	HEADER("folded blank line", HTTP1_FOLDED, "X: y" CRLF " "),
	DENIED("folded Host", HTTP1_FOLDED, GET "Host: a.test" CRLF " b.test" END),
	DENIED("folded request line", HTTP1_FOLDED, GET " Host: a.test" END),
	HEADER("space before the colon", HTTP1_BAD_HEADER, "X : y"),
	HEADER("tab before the colon", HTTP1_BAD_HEADER, "X\t: y"),
	HEADER("space in the name", HTTP1_BAD_HEADER, "X y: z"),
	HEADER("no colon", HTTP1_BAD_HEADER, "X"),
	HEADER("no name", HTTP1_BAD_HEADER, ": y"),
	HEADER("8 bit in the name", HTTP1_BAD_HEADER, "X\xe4: y"),
	HEADER("bracket in the name", HTTP1_BAD_HEADER, "X[]: y"),
	HEADER("bare LF", HTTP1_BAD_HEADER, "X: y\nHost: b.test"),
	HEADER("bare CR", HTTP1_BAD_HEADER, "X: y\rHost: b.test"),
	HEADER("CR CR LF", HTTP1_BAD_HEADER, "X: y\r" CRLF "Z: z"),
	HEADER("vertical tab", HTTP1_BAD_HEADER, "X: y\vz"),
	HEADER("form feed", HTTP1_BAD_HEADER, "X: y\fz"),
	HEADER("DEL", HTTP1_BAD_HEADER, "X: y\x7fz"),
	HEADER("escape", HTTP1_BAD_HEADER, "X: y\x1bz"),
	HEADER("next line byte", HTTP1_BAD_HEADER, "X: y\x85Host: b.test"),
	DENIED("LF after the request line", HTTP1_BAD_HEADER, "GET / HTTP/1.1\n" HOST CRLF),
	DENIED("CR after the request line", HTTP1_BAD_HEADER, "GET / HTTP/1.1\rX" CRLF HOST CRLF),
	DENIED("LF LF at the end", HTTP1_BAD_HEADER, GET "Host: a.test\n\n"),
	DENIED("CR LF LF at the end", HTTP1_BAD_HEADER, GET HOST "\n"),
	DENIED("CR and no LF at the end", HTTP1_BAD_HEADER, GET HOST "\rX"),
	{ "NUL in a value", GET HOST "X: y\0z" END, "", 0, HTTP1_BAD_HEADER, 0,
	  sizeof(GET HOST "X: y\0z" END) - 1 },
	{ "NUL in a name", GET HOST "X\0: y" END, "", 0, HTTP1_BAD_HEADER, 0,
	  sizeof(GET HOST "X\0: y" END) - 1 },
	{ "NUL in Host", GET "Host: a.test\0.b" END, "", 0, HTTP1_BAD_HEADER, 0,
	  sizeof(GET "Host: a.test\0.b" END) - 1 },
	{ "NUL in the method", "G\0T", "", 0, HTTP1_NOT_HTTP, 0, 3 },
	{ "an unfinished head stays", GET HOST, "", 0, HTTP1_OK, 0, 0 },
	{ "without its last LF too", GET HOST "\r", "", 0, HTTP1_OK, 0, 0 },
};

static const struct test_case FRAMING[] = {
	PASSES("length and next", "a.test next.test", POST "Content-Length: 5" END "hello" NEXT),
	PASSES("length 0", "a.test next.test", POST "Content-Length: 0" END NEXT),
	PASSES("length without space", "a.test", POST "Content-Length:5" END "hello"),
	PASSES("a request in a body is a body", "a.test next.test",
	       POST "content-length: 32" END GET "Host: b.test" END NEXT),
	PASSES("no length, no body", "a.test next.test", POST CRLF NEXT),
	PASSES("chunked", "a.test next.test", CHUNKED "5" CRLF "hello" CRLF "0" END NEXT),
	PASSES("chunked without space", "a.test", POST "transfer-encoding:chunked" END "0" END),
	PASSES("largest length", "a.test", POST "Content-Length: 9223372036854775807" END "x"),
	PASSES("TE is another field", "a.test next.test", POST "TE: trailers" END NEXT),
	HEADER("length past 63 bits", HTTP1_SMUGGLING, "Content-Length: 9223372036854775808"),
	HEADER("length past 64 bits", HTTP1_SMUGGLING, "Content-Length: 18446744073709551621"),
	HEADER("length, very long", HTTP1_SMUGGLING, "Content-Length: 99999999999999999999999999"),
	HEADER("negative", HTTP1_SMUGGLING, "Content-Length: -5"),
	HEADER("plus", HTTP1_SMUGGLING, "Content-Length: +1"),
	HEADER("hexadecimal", HTTP1_SMUGGLING, "Content-Length: 0x5"),
	HEADER("octal", HTTP1_SMUGGLING, "Content-Length: 05"),
	HEADER("fraction", HTTP1_SMUGGLING, "Content-Length: 5.0"),
	HEADER("empty", HTTP1_SMUGGLING, "Content-Length:"),
	HEADER("list", HTTP1_SMUGGLING, "Content-Length: 5, 5"),
	HEADER("two spaces", HTTP1_SMUGGLING, "Content-Length:  5"),
	HEADER("tab", HTTP1_SMUGGLING, "Content-Length:\t5"),
	HEADER("space behind", HTTP1_SMUGGLING, "Content-Length: 5 "),
	HEADER("space within", HTTP1_SMUGGLING, "Content-Length: 5 5"),
	HEADER("quoted", HTTP1_SMUGGLING, "Content-Length: \"5\""),
	HEADER("twice, the same", HTTP1_SMUGGLING, "Content-Length: 5" CRLF "Content-Length: 5"),
	HEADER("twice, another", HTTP1_SMUGGLING, "Content-Length: 5" CRLF "content-length: 6"),
	HEADER("underscore", HTTP1_SMUGGLING, "Content_Length: 5"),
	HEADER("space before the colon", HTTP1_BAD_HEADER, "Content-Length : 5"),
	HEADER("CL.TE", HTTP1_SMUGGLING, "Content-Length: 5" CRLF "Transfer-Encoding: chunked"),
	HEADER("TE.CL", HTTP1_SMUGGLING, "Transfer-Encoding: chunked" CRLF "Content-Length: 5"),
	HEADER("TE.TE", HTTP1_SMUGGLING,
	       "Transfer-Encoding: chunked" CRLF "Transfer-Encoding: chunked"),
	HEADER("TE.TE, unknown", HTTP1_SMUGGLING,
	       "Transfer-Encoding: chunked" CRLF "Transfer-encoding: x"),
	HEADER("xchunked", HTTP1_SMUGGLING, "Transfer-Encoding: xchunked"),
	HEADER("chunkedx", HTTP1_SMUGGLING, "Transfer-Encoding: chunkedx"),
	HEADER("identity", HTTP1_SMUGGLING, "Transfer-Encoding: identity"),
	HEADER("gzip, chunked", HTTP1_SMUGGLING, "Transfer-Encoding: gzip, chunked"),
	HEADER("chunked, identity", HTTP1_SMUGGLING, "Transfer-Encoding: chunked, identity"),
	HEADER("chunked with a comma", HTTP1_SMUGGLING, "Transfer-Encoding: chunked,"),
	HEADER("chunked with a parameter", HTTP1_SMUGGLING, "Transfer-Encoding: chunked;q=1"),
	HEADER("quoted coding", HTTP1_SMUGGLING, "Transfer-Encoding: \"chunked\""),
	HEADER("upper case", HTTP1_SMUGGLING, "Transfer-Encoding: CHUNKED"),
	HEADER("tab before the coding", HTTP1_SMUGGLING, "Transfer-Encoding:\tchunked"),
	HEADER("spaces before the coding", HTTP1_SMUGGLING, "Transfer-Encoding:  chunked"),
	HEADER("space behind the coding", HTTP1_SMUGGLING, "Transfer-Encoding: chunked "),
	HEADER("empty coding", HTTP1_SMUGGLING, "Transfer-Encoding:"),
	HEADER("coding, 8 bit", HTTP1_SMUGGLING,
	       "Transfer-Encoding: \xff"
	       "chunked"),
	HEADER("coding, vertical tab", HTTP1_BAD_HEADER, "Transfer-Encoding:\vchunked"),
	HEADER("coding, name with space", HTTP1_BAD_HEADER, "Transfer-Encoding : chunked"),
	HEADER("coding, name with underscore", HTTP1_SMUGGLING, "Transfer_Encoding: chunked"),
	HEADER("coding, folded", HTTP1_SMUGGLING, "Transfer-Encoding:" CRLF " chunked"),
	HEADER("coding, after a fold", HTTP1_FOLDED, "X: y" CRLF " Transfer-Encoding: chunked"),
	HEADER("coding, behind a bare LF", HTTP1_BAD_HEADER, "X: y\nTransfer-Encoding: chunked"),
	DENIED("chunked in 1.0", HTTP1_SMUGGLING,
	       "POST / HTTP/1.0" CRLF HOST "Transfer-Encoding: chunked" END),
	PASSES("length in 1.0", "a.test", "POST / HTTP/1.0" CRLF HOST "Content-Length: 1" END "x"),
	HEADER("Connection drops Host", HTTP1_SMUGGLING, "Connection: close, hOst"),
	HEADER("Connection drops the length", HTTP1_SMUGGLING, "Connection: Content-Length"),
	HEADER("Connection drops the coding", HTTP1_SMUGGLING, "Connection: ,Transfer-Encoding,"),
	HEADER_OK("Connection", "Connection: keep-alive, TE, close"),
};

static const struct test_case CHUNK_CASES[] = {
	PASSES("none", "a.test", CHUNKED "0" END),
	PASSES("several", "a.test next.test",
	       CHUNKED "1" CRLF "a" CRLF "0a" CRLF "0123456789" CRLF "00000002" CRLF CRLF CRLF
	               "000" END NEXT),
	PASSES("extension", "a.test", CHUNKED "1;x=\"y; z\"\t" CRLF "a" CRLF "0;x" END),
	PASSES("trailer", "a.test next.test", CHUNKED "0" CRLF "X: y" CRLF "Z: z" END NEXT),
	{ "a chunk line is held back", CHUNKED "5;x", "a.test", sizeof(CHUNKED) - 1, HTTP1_OK, 0,
	  0 },
	{ "a trailer is held back", CHUNKED "0" CRLF "X: y" CRLF, "a.test",
	  sizeof(CHUNKED "0" CRLF) - 1, HTTP1_OK, 0, 0 },
	PASSES("largest", "a.test", CHUNKED "7fffffff" CRLF "x"),
	CHUNKS("too large", HTTP1_BAD_CHUNK, "", "80000000" CRLF "x"),
	CHUNKS("nine digits", HTTP1_BAD_CHUNK, "", "000000001" CRLF "x"),
	CHUNKS("64 bits and over", HTTP1_BAD_CHUNK, "", "10000000000000005" CRLF "hello"),
	CHUNKS("negative", HTTP1_BAD_CHUNK, "", "-1" CRLF "x"),
	CHUNKS("plus", HTTP1_BAD_CHUNK, "", "+1" CRLF "x"),
	CHUNKS("0x", HTTP1_BAD_CHUNK, "", "0x1" CRLF "x"),
	CHUNKS("space before", HTTP1_BAD_CHUNK, "", " 1" CRLF "x"),
	CHUNKS("space behind", HTTP1_BAD_CHUNK, "", "1 " CRLF "x"),
	CHUNKS("space before the extension", HTTP1_BAD_CHUNK, "", "1 ;x" CRLF "x"),
	CHUNKS("tab behind", HTTP1_BAD_CHUNK, "", "1\t" CRLF "x"),
	CHUNKS("underscore", HTTP1_BAD_CHUNK, "", "1_0" CRLF "x"),
	CHUNKS("no size", HTTP1_BAD_CHUNK, "", CRLF "x"),
	CHUNKS("only an extension", HTTP1_BAD_CHUNK, "", ";x" CRLF "x"),
	CHUNKS("no number", HTTP1_BAD_CHUNK, "", "g" CRLF "x"),
	CHUNKS("LF", HTTP1_BAD_CHUNK, "", "1\nx"),
	CHUNKS("CR", HTTP1_BAD_CHUNK, "", "1\rx"),
	CHUNKS("LF in the extension", HTTP1_BAD_CHUNK, "", "1;\nx" CRLF "0" END),
	CHUNKS("CR in the extension", HTTP1_BAD_CHUNK, "", "1;\rx" CRLF "0" END),
	CHUNKS("8 bit in the extension", HTTP1_BAD_CHUNK, "", "1;\xe4" CRLF "x"),
	CHUNKS("chunk too short", HTTP1_BAD_CHUNK, "5" CRLF "hello", "o" CRLF),
	CHUNKS("LF behind the chunk", HTTP1_BAD_CHUNK, "1" CRLF "x", "\n0" END),
	CHUNKS("CR behind the chunk", HTTP1_BAD_CHUNK, "1" CRLF "x", "\rX"),
	CHUNKS("Host in the trailer", HTTP1_SMUGGLING, "0" CRLF, "Host: b.test" END),
	CHUNKS("length in the trailer", HTTP1_SMUGGLING, "0" CRLF,
	       "X: y" CRLF "Content-length: 5" END),
	CHUNKS("coding in the trailer", HTTP1_SMUGGLING, "0" CRLF,
	       "Transfer-Encoding: chunked" END),
	CHUNKS("fold in the trailer", HTTP1_FOLDED, "0" CRLF, "X: y" CRLF " z" END),
	CHUNKS("LF in the trailer", HTTP1_BAD_HEADER, "0" CRLF, "X: y\nZ: z" END),
	CHUNKS("request as a trailer", HTTP1_BAD_HEADER, "0" CRLF, NEXT),
};

static const struct test_case PIPELINES[] = {
	PASSES("two", "a.test b.test:81", GET HOST CRLF GET "Host: B.test:81" END),
	PASSES("state is not kept", "a.test next.test a.test next.test next.test:80 a.test",
	       POST "Content-Length: 2" END "xx" NEXT CHUNKED "0" END NEXT "GET / HTTP/1.0" CRLF
	            "Host: next.test:80" END CHUNKED "0" END),
	DENIED_AT("second without Host", "a.test", HTTP1_NO_HOST, GET HOST CRLF, GET CRLF),
	DENIED_AT("second is no request", "a.test", HTTP1_NOT_HTTP,
	          POST "Content-Length: 5" END "hello", CRLF NEXT),
	DENIED_AT("body longer than its length", "a.test", HTTP1_NOT_HTTP,
	          POST "Content-Length: 3" END "{x}", "{}"),
	DENIED_AT("second in 0.9", "a.test", HTTP1_VERSION, GET HOST CRLF, "GET /" CRLF),
};

#define WS POST "Connection: Upgrade" CRLF "Upgrade: websocket" END

static const struct test_case UPGRADES[] = {
	{ "held back", WS NEXT, "a.test", sizeof(WS) - 1, HTTP1_OK, ANSWER_NEVER, 0 },
	{ "garbage too", WS "\x81\x05hello", "a.test", sizeof(WS) - 1, HTTP1_OK, ANSWER_NEVER, 0 },
	{ "switched", WS "\x81\x05hello" NEXT, "a.test", ALL, HTTP1_OK, ANSWER_SWITCH, 0 },
	{ "not switched", WS NEXT, "a.test next.test", ALL, HTTP1_OK, ANSWER_OTHER, 0 },
	{ "not switched, garbage", WS "\x81\x05hello", "a.test", sizeof(WS) - 1, HTTP1_NOT_HTTP,
	  ANSWER_OTHER, 0 },
	{ "several protocols, length 0", POST "Upgrade: x/1, y" CRLF "Content-Length: 0" END "raw",
	  "a.test", ALL, HTTP1_OK, ANSWER_SWITCH, 0 },
	HEADER("with a body", HTTP1_SMUGGLING, "Upgrade: websocket" CRLF "Content-Length: 1"),
	HEADER("with chunks", HTTP1_SMUGGLING,
	       "Transfer-Encoding: chunked" CRLF "Upgrade: websocket"),
	{ "no upgrade, no switch", GET HOST CRLF "\x81\x05hello", "a.test",
	  sizeof(GET HOST CRLF) - 1, HTTP1_NOT_HTTP, ANSWER_SWITCH, 0 },
	{ "in the second request", GET HOST CRLF WS, "a.test", sizeof(GET HOST CRLF) - 1,
	  HTTP1_LATE_UPGRADE, ANSWER_SWITCH, 0 },
	{ "again", WS WS, "a.test", sizeof(WS) - 1, HTTP1_LATE_UPGRADE, ANSWER_OTHER, 0 },
	HEADER_OK("another field", "Upgrade-Insecure-Requests: h2c"),
	HEADER("h2c", HTTP1_H2, "Upgrade: h2c"),
	HEADER("H2C", HTTP1_H2, "uPGRADE:H2C"),
	HEADER("h2c in a list", HTTP1_H2, "Upgrade: websocket,\th2c "),
	HEADER("h2c in a second line", HTTP1_H2, "Upgrade: websocket" CRLF "Upgrade: h2c"),
	HEADER("h2c of a draft", HTTP1_H2, "Upgrade: h2c-14"),
	HEADER("h2", HTTP1_H2, "Upgrade: h2"),
	HEADER("HTTP/2.0", HTTP1_H2, "Upgrade: HTTP/2.0"),
	HEADER("settings alone", HTTP1_H2, "HTTP2-Settings: AAMAAABk"),
	HEADER("settings with underscore", HTTP1_SMUGGLING, "HTTP2_Settings: AAMAAABk"),
	HEADER("empty", HTTP1_BAD_HEADER, "Upgrade:"),
	HEADER("empty element", HTTP1_BAD_HEADER, "Upgrade: x,,y"),
	HEADER("quoted", HTTP1_BAD_HEADER, "Upgrade: \"h2c\""),
	HEADER("parameter", HTTP1_BAD_HEADER, "Upgrade: x;h2c"),
};

#define ANNOUNCED        POST "Expect: 100-continue" CRLF "Content-Length: 5" END
#define ANNOUNCED_CHUNKS POST "Expect: 100-Continue" CRLF "Transfer-Encoding: chunked" END
#define HELLO            "5" CRLF "hello" CRLF "0" END

static const struct test_case EXPECTATIONS[] = {
	{ "held back", ANNOUNCED "hello" NEXT, "a.test", sizeof(ANNOUNCED) - 1, HTTP1_OK,
	  ANSWER_NEVER, 0 },
	{ "a body that is a request", ANNOUNCED NEXT, "a.test", sizeof(ANNOUNCED) - 1, HTTP1_OK,
	  ANSWER_NEVER, 0 },
	{ "wanted", ANNOUNCED "hello" NEXT, "a.test next.test", ALL, HTTP1_OK, ANSWER_SWITCH, 0 },
	{ "not wanted", ANNOUNCED "hello" NEXT, "a.test", sizeof(ANNOUNCED) - 1, HTTP1_OK,
	  ANSWER_OTHER, 0 },
	{ "not wanted, and a request", ANNOUNCED NEXT, "a.test", sizeof(ANNOUNCED) - 1, HTTP1_OK,
	  ANSWER_OTHER, 0 },
	{ "chunks held back", ANNOUNCED_CHUNKS HELLO, "a.test", sizeof(ANNOUNCED_CHUNKS) - 1,
	  HTTP1_OK, ANSWER_NEVER, 0 },
	{ "chunks wanted", ANNOUNCED_CHUNKS HELLO NEXT, "a.test next.test", ALL, HTTP1_OK,
	  ANSWER_SWITCH, 0 },
	{ "chunks not wanted", ANNOUNCED_CHUNKS HELLO NEXT, "a.test", sizeof(ANNOUNCED_CHUNKS) - 1,
	  HTTP1_OK, ANSWER_OTHER, 0 },
	{ "wanted, and a bad body", ANNOUNCED_CHUNKS "x" CRLF, "a.test",
	  sizeof(ANNOUNCED_CHUNKS) - 1, HTTP1_BAD_CHUNK, ANSWER_SWITCH, 0 },
	PASSES("without a body", "a.test next.test", GET HOST "Expect: 100-continue" END NEXT),
	PASSES("with an empty one", "a.test next.test",
	       POST "Expect: 100-continue" CRLF "Content-Length: 0" END NEXT),
	DENIED_AT("in the second request", "a.test", HTTP1_LATE_EXPECT, GET HOST CRLF,
	          ANNOUNCED "hello"),
	HEADER("another", HTTP1_EXPECT, "Expect: 200-ok"),
	HEADER("two", HTTP1_EXPECT, "Expect: 100-continue" CRLF "Expect: 100-continue"),
	HEADER("a list", HTTP1_EXPECT, "Expect: 100-continue, x"),
	HEADER("empty", HTTP1_EXPECT, "Expect:"),
	HEADER("dropped on the way", HTTP1_SMUGGLING,
	       "Connection: expect" CRLF "Expect: 100-continue"),
	DENIED("of 1.0", HTTP1_EXPECT,
	       "POST / HTTP/1.0" CRLF HOST "Expect: 100-continue" CRLF "Content-Length: 1" END "x"),
};

#endif
