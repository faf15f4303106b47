/* crypto.c - measures the hashes and signatures of a run.
 *
 *   cc -O3 -std=gnu17 -D_GNU_SOURCE -I include -I src -o crypto tests/bench/crypto.c \
 *      build/src/libskillsandbox.a && ./crypto
 *
 * The first signature of a process also has to load the pages of its table. A run makes only that
 * one, so it is measured separately. Each figure is the best of many, because other programs use
 * the machine, too. */
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/ed25519.h"
#include "base/sha256.h"
#include "base/sha512.h"

#define ROUNDS 400

static uint8_t data[64 * 1024];
static uint8_t out[64];
static struct ed25519_key key;

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void hash_portable(void)
{
	sha256_portable();
	sha256(data, sizeof(data), out);
}

static void hash_accelerated(void)
{
	(void)sha256_accelerate();
	sha256(data, sizeof(data), out);
}

static void hash_512(void)
{
	sha512(data, sizeof(data), out);
}

static void make_key(void)
{
	ed25519_key_init(&key, data);
}

static void sign(void)
{
	ed25519_sign(&key, data, 32, out);
}

static void verify(void)
{
	if (!ed25519_verify(key.public, data, 32, out)) {
		_exit(1);
	}
}

static double best(void (*f)(void))
{
	double least = 1e9;

	for (int i = 0; i < ROUNDS; i++) {
		double start = now_us();
		f();
		double t = now_us() - start;
		least = t < least ? t : least;
	}
	return least;
}

/* Makes a key and a signature in a process that has not used this code or its table before. */
static double cold(void)
{
	double t = 0;
	int fds[2];

	if (pipe(fds) != 0) {
		return 0;
	}
	pid_t pid = fork();
	if (pid == 0) {
		double start = now_us();
		make_key();
		sign();
		t = now_us() - start;
		_exit(write(fds[1], &t, sizeof(t)) == (ssize_t)sizeof(t) ? 0 : 1);
	}
	if (pid < 0 || waitpid(pid, NULL, 0) != pid ||
	    read(fds[0], &t, sizeof(t)) != (ssize_t)sizeof(t)) {
		t = 0;
	}
	close(fds[0]);
	close(fds[1]);
	return t;
}

static double best_cold(void)
{
	double least = 1e9;

	for (int i = 0; i < ROUNDS / 4; i++) {
		double t = cold();
		least = t > 0 && t < least ? t : least;
	}
	return least;
}

int main(void)
{
	printf("key + signature, cold  %8.1f us\n", best_cold());
	printf("key from seed          %8.1f us\n", best(make_key));
	printf("sign                   %8.1f us\n", best(sign));
	printf("verify                 %8.1f us\n", best(verify));
	printf("SHA-256, plain C       %8.0f MB/s\n", sizeof(data) / best(hash_portable));
	printf("SHA-256, accelerated   %8.0f MB/s\n", sizeof(data) / best(hash_accelerated));
	printf("SHA-512                %8.0f MB/s\n", sizeof(data) / best(hash_512));
	return 0;
}
