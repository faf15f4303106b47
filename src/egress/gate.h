/* gate.h - datagrams between the broker and one server, through the dialler.
 *
 * A connected TCP socket leads to its server and nowhere else. A connected UDP socket does not:
 * sendto() with another address sends there, and the broker must be able to call sendto() to
 * answer the skill. So the broker never holds a UDP socket. It gets one end of a SOCK_SEQPACKET
 * pair. The dialler moves datagrams between the other end and the socket and does not parse them.
 *
 * A message of either side is one byte, enum gate_word, and then the datagram. So an empty
 * datagram is not mistaken for the end. */
#ifndef EGRESS_GATE_H
#define EGRESS_GATE_H

enum gate_word {
	GATE_DATAGRAM,
	GATE_UNREACHABLE, /* from the dialler only: the server's side refused a datagram */
	GATE_TOO_LARGE,   /* from the dialler only: the datagram is too large for the network */
};

#define GATE_MESSAGE (1 + 65535)

/* Takes `udp`, which must be connected and non-blocking. Returns the broker's end, new,
 * non-blocking and CLOEXEC; when that is closed, the gate ends. Returns -1 with errno; EMFILE
 * past MAX_UDP_FLOWS. */
int gate_open(int udp);

/* Call it when the broker has closed all its ends: waits, at most 100 ms, until what it sent
 * before is on its way. */
void gate_finish(void);

#endif
