/* gate.h - datagrams between the broker and one server, through the dialler.
 *
 * A connected TCP socket leads to its server and nowhere else. A connected UDP
 * socket does not: sendto() with another address sends there, and the broker
 * must be able to sendto(), to answer the skill. So it never holds one. It
 * gets one end of a SOCK_SEQPACKET pair; the dialler moves datagrams between
 * the other end and the socket, and looks at none of them.
 *
 * A message of either side is one byte, enum gate_word, and the datagram; an
 * empty datagram is thus not mistaken for the end. */
#ifndef EGRESS_GATE_H
#define EGRESS_GATE_H

enum gate_word {
	GATE_DATAGRAM,
	GATE_UNREACHABLE, /* from the dialler only: the server's side refused one, */
	GATE_TOO_LARGE,   /* or it is more than one datagram can be there */
};

#define GATE_MESSAGE (1 + 65535)

/* Takes `udp`, connected and non-blocking. Returns the broker's end, new,
 * non-blocking and CLOEXEC; when it is closed the gate ends. -1 with errno;
 * EMFILE past MAX_UDP_FLOWS. */
int gate_open(int udp);

/* The broker has closed all its ends: waits, a moment at most, until what it sent before is
 * on its way. */
void gate_finish(void);

#endif
