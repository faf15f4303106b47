/* libcrypto.h - the few functions of OpenSSL with which the tests compare ours. They are loaded at
 * run time, because none of our programs is linked against OpenSSL. */
#ifndef TESTS_LIBCRYPTO_H
#define TESTS_LIBCRYPTO_H

#include <dlfcn.h>
#include <stddef.h>

#define EVP_PKEY_ED25519 1087

struct libcrypto {
	void *handle;
	const void *(*sha256)(void);
	int (*digest)(const void *, size_t, unsigned char *, unsigned *, const void *, void *);
	void *(*private_key)(int, void *, const unsigned char *, size_t);
	void *(*public_key)(int, void *, const unsigned char *, size_t);
	int (*get_public)(const void *, unsigned char *, size_t *);
	void (*key_free)(void *);
	void *(*ctx_new)(void);
	void (*ctx_free)(void *);
	int (*sign_init)(void *, void *, const void *, void *, void *);
	int (*sign)(void *, unsigned char *, size_t *, const unsigned char *, size_t);
	int (*verify_init)(void *, void *, const void *, void *, void *);
	int (*verify)(void *, const unsigned char *, size_t, const unsigned char *, size_t);
};

/* Returns 0, or -1 if the library or one of its functions is missing. */
static inline int libcrypto_load(struct libcrypto *c)
{
	const struct {
		void *slot;
		const char *name;
	} names[] = {
		{ &c->sha256, "EVP_sha256" },
		{ &c->digest, "EVP_Digest" },
		{ &c->private_key, "EVP_PKEY_new_raw_private_key" },
		{ &c->public_key, "EVP_PKEY_new_raw_public_key" },
		{ &c->get_public, "EVP_PKEY_get_raw_public_key" },
		{ &c->key_free, "EVP_PKEY_free" },
		{ &c->ctx_new, "EVP_MD_CTX_new" },
		{ &c->ctx_free, "EVP_MD_CTX_free" },
		{ &c->sign_init, "EVP_DigestSignInit" },
		{ &c->sign, "EVP_DigestSign" },
		{ &c->verify_init, "EVP_DigestVerifyInit" },
		{ &c->verify, "EVP_DigestVerify" },
	};

	c->handle = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL);
	for (size_t i = 0; c->handle != NULL && i < sizeof(names) / sizeof(names[0]); i++) {
		void *f = dlsym(c->handle, names[i].name);
		if (f == NULL) {
			return -1;
		}
		__builtin_memcpy(names[i].slot, &f, sizeof(f));
	}
	return c->handle != NULL ? 0 : -1;
}

#endif
