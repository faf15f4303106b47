/* gate.h - moves datagrams between the broker and one server, through the dialler.
 *
 * A connected TCP socket can reach only its server. A connected UDP socket can reach other servers,
 * too, because sendto() accepts another address, and the broker must be able to call sendto() to
 * answer the skill. Therefore the broker must never get a UDP socket. It gets one end of a
 * SOCK_SEQPACKET pair. The dialler moves datagrams between the other end and the UDP socket, and
 * does not parse them.
 *
 * Each message of either side is one byte (enum gate_word) followed by the datagram. So an empty
 * datagram is not mistaken for the end of the connection. */
#ifndef EGRESS_GATE_H
#define EGRESS_GATE_H

enum gate_word {
	GATE_DATAGRAM,
	GATE_UNREACHABLE, /* only from the dialler: the server's side refused a datagram */
	GATE_TOO_LARGE,   /* only from the dialler: the datagram is too large for the network */
};

#define GATE_MESSAGE (1 + 65535)

/* Starts a gate for `udp`, which must be connected and non-blocking. Takes `udp`. Returns the
 * broker's end, a new fd (non-blocking, CLOEXEC); when the broker closes it, the gate ends. Returns
 * -1 with errno; errno is EMFILE if there are already MAX_UDP_FLOWS gates. */
int gate_open(int udp);

/* Must be called when the broker has closed all its ends. Waits, at most 100 ms, until all
 * datagrams have left that the broker sent before it closed its ends. */
void gate_finish(void);

#endif
