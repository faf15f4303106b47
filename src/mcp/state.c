/* state.c - seals and opens the states that clients keep for us. */
#include "mcp/state.h"

#include <string.h>
#include <sys/random.h>

#include "base/ct.h"
#include "base/hex.h"
#include "base/hmac.h"
#include "base/limits.h"
#include "base/own.h"
#include "os/clock.h"

#define NONCE_BYTES 16
#define TIME_BYTES  8
#define MAC_BYTES   SHA256_BYTES

struct state_head {
	uint8_t nonce[NONCE_BYTES];
	uint8_t until[TIME_BYTES]; /* big endian */
	uint8_t mac[MAC_BYTES];
};
_Static_assert(sizeof(struct state_head) == NONCE_BYTES + TIME_BYTES + MAC_BYTES, "no padding");

/* The nonce of a state that was sent and has not come back yet. */
struct nonce {
	uint8_t bytes[NONCE_BYTES];
	uint8_t who[NONCE_BYTES]; /* digest of the client's principal */
	uint64_t until;           /* time as in clock_ms() */
	uint64_t number;          /* the newer, the higher; 0: this place is free */
};

struct state_store {
	uint8_t key[SHA256_BYTES];
	uint64_t ttl_ms;
	struct nonce nonces[MAX_MCP_STATES];
	uint64_t last;
};

struct state_store *state_store_new(uint64_t ttl_ms)
{
	struct state_store *s = calloc(1, sizeof(*s));

	if (s == NULL) {
		return NULL;
	}
	s->ttl_ms = ttl_ms;
	if (getrandom(s->key, sizeof(s->key), 0) != (ssize_t)sizeof(s->key)) {
		state_store_free(s);
		return NULL;
	}
	return s;
}

void state_store_free(struct state_store *s)
{
	if (s != NULL) {
		explicit_bzero(s, sizeof(*s));
		free(s);
	}
}

static void put_u64(uint8_t out[TIME_BYTES], uint64_t v)
{
	for (size_t i = 0; i < TIME_BYTES; i++) {
		out[i] = (uint8_t)(v >> (8 * (TIME_BYTES - 1 - i)));
	}
}

static uint64_t get_u64(const uint8_t in[TIME_BYTES])
{
	uint64_t v = 0;

	for (size_t i = 0; i < TIME_BYTES; i++) {
		v = v << 8 | in[i];
	}
	return v;
}

/* Hashes the length before the bytes, so that the end of one piece cannot be taken for the
 * beginning of the next. */
static void mac_piece(struct hmac *h, const void *data, size_t len)
{
	uint8_t n[TIME_BYTES];

	put_u64(n, len);
	hmac_update(h, n, sizeof(n));
	hmac_update(h, data, len);
}

static void state_mac(const struct state_store *s, const struct state_binding *of,
                      const struct state_head *head, const void *text, size_t len,
                      uint8_t ret[MAC_BYTES])
{
	static const char what[] = "mcp requestState 1";
	struct hmac h;

	hmac_init(&h, s->key, sizeof(s->key));
	mac_piece(&h, what, sizeof(what) - 1);
	mac_piece(&h, of->method, strlen(of->method));
	mac_piece(&h, of->principal, strlen(of->principal));
	mac_piece(&h, of->params, sizeof(of->params));
	mac_piece(&h, head->nonce, sizeof(head->nonce));
	mac_piece(&h, head->until, sizeof(head->until));
	mac_piece(&h, text, len);
	hmac_final(&h, ret);
}

/* Sorts by client, and the nonces of one client by age, the oldest first. */
static int compare_nonces(const void *a, const void *b)
{
	const struct nonce *x = a, *y = b;
	int who = memcmp(x->who, y->who, NONCE_BYTES);

	return who != 0 ? who : x->number < y->number ? -1 : x->number > y->number;
}

/* Finds a place for a nonce: a free or expired one. If there is none, the oldest nonce of the
 * client that has the most nonces is replaced, so that one client cannot remove the nonces of
 * another. */
static struct nonce *find_place(struct state_store *s)
{
	const uint64_t now = clock_ms();
	size_t found = 0, most = 0;

	for (size_t i = 0; i < MAX_MCP_STATES; i++) {
		if (s->nonces[i].number == 0 || now > s->nonces[i].until) {
			return &s->nonces[i];
		}
	}
	qsort(s->nonces, MAX_MCP_STATES, sizeof(s->nonces[0]), compare_nonces);
	for (size_t first = 0, i = 0; i < MAX_MCP_STATES; i++) {
		const struct nonce *oldest = &s->nonces[first];
		first = memcmp(s->nonces[i].who, oldest->who, NONCE_BYTES) == 0 ? first : i;
		size_t has = i - first + 1;
		if (has > most ||
		    (has == most && s->nonces[first].number < s->nonces[found].number)) {
			most = has;
			found = first;
		}
	}
	return &s->nonces[found];
}

static void remember_nonce(struct state_store *s, const char *principal,
                           const struct state_head *head)
{
	struct nonce *n = find_place(s);
	uint8_t who[SHA256_BYTES];

	sha256(principal, strlen(principal), who);
	memcpy(n->bytes, head->nonce, NONCE_BYTES);
	memcpy(n->who, who, NONCE_BYTES);
	n->until = get_u64(head->until);
	n->number = ++s->last;
}

/* Removes the nonce. Returns whether it was stored. */
static bool redeem_nonce(struct state_store *s, const uint8_t nonce[NONCE_BYTES])
{
	for (size_t i = 0; i < MAX_MCP_STATES; i++) {
		if (s->nonces[i].number != 0 &&
		    memcmp(s->nonces[i].bytes, nonce, NONCE_BYTES) == 0) {
			s->nonces[i] = (struct nonce){ 0 };
			return true;
		}
	}
	return false;
}

static void add_hex(struct buf *out, const void *data, size_t len)
{
	char digits[2 * 64 + 1];

	for (size_t at = 0; at < len; at += 64) {
		hex_encode((const char *)data + at, len - at < 64 ? len - at : 64, digits);
		buf_adds(out, digits);
	}
}

int state_seal(struct state_store *s, const struct state_binding *of, const char *text,
               struct buf *out)
{
	struct state_head head;
	size_t len = strlen(text);

	if (len > MAX_MCP_STATE ||
	    getrandom(head.nonce, sizeof(head.nonce), 0) != (ssize_t)sizeof(head.nonce)) {
		return -1;
	}
	put_u64(head.until, clock_ms() + s->ttl_ms);
	state_mac(s, of, &head, text, len, head.mac);
	add_hex(out, &head, sizeof(head));
	add_hex(out, text, len);
	if (out->failed) {
		return -1;
	}
	remember_nonce(s, of->principal, &head);
	return 0;
}

enum state_verdict state_open(struct state_store *s, const struct state_binding *of,
                              const char *sealed, struct buf *ret_text)
{
	size_t digits = strlen(sealed);
	size_t bytes = digits / 2;
	struct state_head head;
	uint8_t mac[MAC_BYTES];

	if (bytes < sizeof(head) || bytes - sizeof(head) > MAX_MCP_STATE) {
		return STATE_FORGED;
	}
	auto_free char *raw = malloc(bytes);
	if (raw == NULL) {
		return STATE_FAILED;
	}
	if (hex_decode(sealed, digits, raw, bytes) < 0) {
		return STATE_FORGED;
	}
	const char *text = raw + sizeof(head);
	size_t len = bytes - sizeof(head);

	memcpy(&head, raw, sizeof(head));
	state_mac(s, of, &head, text, len, mac);
	if (!ct_equal(mac, head.mac, sizeof(mac))) {
		return STATE_FORGED;
	}
	/* Must come after the MAC check, so that a client cannot use up the state of another
	 * client. */
	if (!redeem_nonce(s, head.nonce)) {
		return STATE_USED;
	}
	if (clock_ms() > get_u64(head.until)) {
		return STATE_OLD;
	}
	buf_add(ret_text, text, len);
	return ret_text->failed ? STATE_FAILED : STATE_GOOD;
}

const char *state_verdict_text(enum state_verdict v)
{
	static const char *const TEXTS[] = {
		[STATE_GOOD] = "is good",
		[STATE_FORGED] = "was not made by this server for this client and this request",
		[STATE_OLD] = "is too old",
		[STATE_USED] = "has been used already, or has been dropped",
		[STATE_FAILED] = "could not be read: out of memory",
	};

	return TEXTS[v];
}
