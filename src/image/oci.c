/* oci.c - reads the OCI image layout: index, manifest, configuration. */
#include "image/oci.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/json_read.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/sha256.h"
#include "os/file.h"

#define REF_NAME "org.opencontainers.image.ref.name"
#define MAX_NEST 3 /* maximum nesting of indexes */

#if defined(__x86_64__)
#define ARCHITECTURE "amd64"
#elif defined(__aarch64__)
#define ARCHITECTURE "arm64"
#else
#define ARCHITECTURE "unknown"
#endif

static int fail_oci(struct ssb_error *err, const char *what, const char *name)
{
	return ssb_fail(err, SSB_E_MANIFEST, 0, "image", "%.200s: %s", name, what);
}

/* Opens a regular file beneath the layout; its path must not contain a symlink. Returns a new fd,
 * or -1 with `err`. */
static int open_in(int layout, const char *name, struct ssb_error *err)
{
	auto_fd fd = file_openat2(layout, name, O_RDONLY | O_NONBLOCK,
	                          RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0) {
		return ssb_fail(err, SSB_E_NOT_FOUND, errno, "image",
		                "'%.120s' of the layout cannot be opened; is it a directory in the "
		                "OCI image layout (skopeo copy ... oci:DIR)?",
		                name);
	}
	if (!S_ISREG(st.st_mode)) {
		return fail_oci(err, "it is not a regular file", name);
	}
	return steal_fd(&fd);
}

static int open_blob(int layout, const struct oci_blob *b, struct ssb_error *err)
{
	char name[32 + OCI_HEX];

	snprintf(name, sizeof(name), "blobs/sha256/%s", b->hex);
	return open_in(layout, name, err);
}

static int check_digest(struct sha256 *s, uint64_t got, const struct oci_blob *b,
                        struct ssb_error *err)
{
	uint8_t digest[SHA256_BYTES];
	char hex[OCI_HEX];

	sha256_final(s, digest);
	hex_encode(digest, sizeof(digest), hex);
	if (strcmp(hex, b->hex) != 0 || got != b->size) {
		return fail_oci(err, "the blob does not match its digest and size", b->hex);
	}
	return 0;
}

int oci_copy(const struct oci_image *i, const struct oci_blob *b, int fd, struct ssb_error *err)
{
	auto_fd from = open_blob(i->layout, b, err);
	struct sha256 sha;
	char chunk[64 * 1024];
	struct stat st;
	uint64_t got = 0;
	ssize_t n = 0;

	if (from < 0) {
		return -1;
	}
	/* Check the size first: a larger blob must not be copied to the disk. */
	if (fstat(from, &st) != 0 || (uint64_t)st.st_size != b->size) {
		return fail_oci(err, "the blob does not match its digest and size", b->hex);
	}
	sha256_init(&sha);
	(void)sha256_accelerate();
	while (got <= b->size && (n = TEMP_FAILURE_RETRY(read(from, chunk, sizeof(chunk)))) > 0) {
		got += (uint64_t)n;
		if (got > b->size) {
			break; /* the file has grown since its size was checked */
		}
		sha256_update(&sha, chunk, (size_t)n);
		if (file_write_all(fd, chunk, (size_t)n) != 0) {
			return ssb_fail(err, SSB_E_SYS, errno, "image", "cannot copy the layer");
		}
	}
	if (n < 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "image", "cannot read the layer");
	}
	return check_digest(&sha, got, b, err);
}

/* ---- JSON ------------------------------------------------------------------- */

static int parse_json(struct json_doc *doc, int fd, const struct oci_blob *b, const char *name,
                      struct ssb_error *err)
{
	auto_buf text = BUF(MAX_IMAGE_JSON);
	const char *why = NULL;

	if (file_read_all(fd, &text) != 0 || text.data == NULL) {
		return fail_oci(err, "it is empty or too large", name);
	}
	if (b != NULL) {
		struct sha256 sha;
		sha256_init(&sha);
		sha256_update(&sha, text.data, text.len);
		if (check_digest(&sha, text.len, b, err) != 0) {
			return -1;
		}
	}
	return json_read(doc, text.data, text.len, &why) != 0 ? fail_oci(err, why, name) : 0;
}

static int parse_blob(int layout, const struct oci_blob *b, struct json_doc *doc,
                      struct ssb_error *err)
{
	auto_fd fd = open_blob(layout, b, err);

	return fd < 0 ? -1 : parse_json(doc, fd, b, b->hex, err);
}

/* Reads a descriptor: the digest ("sha256:" and 64 digits) and the size. */
static int take_descriptor(const struct json_doc *doc, const struct json_node *node,
                           struct oci_blob *ret, struct ssb_error *err)
{
	const char *digest = json_string(json_member(doc, node, "digest"), "");
	int64_t size = json_integer(json_member(doc, node, "size"), -1);
	uint8_t raw[SHA256_BYTES];

	if (strncmp(digest, "sha256:", 7) != 0 ||
	    hex_decode(digest + 7, strlen(digest + 7), raw, sizeof(raw)) != 0 || size < 0) {
		return fail_oci(err, "a digest is not sha256 with 64 digits, or a size is missing",
		                digest);
	}
	memcpy(ret->hex, digest + 7, OCI_HEX);
	ret->size = (uint64_t)size;
	return 0;
}

/* True if the manifest is for this machine, or names no platform. */
static bool fits_machine(const struct json_doc *doc, const struct json_node *m)
{
	const struct json_node *p = json_member(doc, m, "platform");

	return p == NULL ||
	       (strcmp(json_string(json_member(doc, p, "os"), "linux"), "linux") == 0 &&
	        strcmp(json_string(json_member(doc, p, "architecture"), ""), ARCHITECTURE) == 0);
}

/* Finds the only manifest of an index that fits this machine and has the tag `ref` (NULL: any).
 * Returns NULL with `err` if there is none or more than one. */
static const struct json_node *choose_manifest(const struct json_doc *doc, const char *ref,
                                               struct ssb_error *err)
{
	const struct json_node *list = json_member(doc, json_top(doc), "manifests");
	const struct json_node *found = NULL;
	size_t n = 0;

	JSON_EACH (m, doc, list) {
		const struct json_node *notes = json_member(doc, m, "annotations");
		const char *name = json_string(json_member(doc, notes, REF_NAME), NULL);
		if (fits_machine(doc, m) &&
		    (ref == NULL || (name != NULL && strcmp(name, ref) == 0))) {
			found = m;
			n++;
		}
	}
	if (n != 1) {
		(void)ssb_fail(
		        err, SSB_E_NOT_FOUND, 0, "image",
		        n == 0 ? "the layout has no image '%.60s' for linux/" ARCHITECTURE
		               : "the layout has several images%.0s; name one: --image DIR:REF",
		        ref != NULL ? ref : "");
		return NULL;
	}
	return found;
}

static bool is_index(const struct json_doc *doc)
{
	return json_is(json_member(doc, json_top(doc), "manifests"), JSON_ARRAY);
}

/* Follows index.json to a manifest and reads it into `doc`. */
static int find_manifest(struct oci_image *i, const char *ref, struct json_doc *doc,
                         struct ssb_error *err)
{
	auto_fd index = open_in(i->layout, "index.json", err);
	struct oci_blob b = { 0 };

	if (index < 0 || parse_json(doc, index, NULL, "index.json", err) != 0) {
		return -1;
	}
	for (int depth = 0; is_index(doc); depth++) {
		const struct json_node *m =
		        depth < MAX_NEST ? choose_manifest(doc, depth == 0 ? ref : NULL, err)
		                         : NULL;
		if (m == NULL) {
			return depth < MAX_NEST ? -1
			                        : fail_oci(err, "its indexes are nested too deeply",
			                                   "index.json");
		}
		if (take_descriptor(doc, m, &b, err) != 0 ||
		    parse_blob(i->layout, &b, doc, err) != 0) {
			return -1;
		}
	}
	memcpy(i->hex, b.hex, OCI_HEX);
	return i->hex[0] == '\0' ? fail_oci(err, "it lists no manifests", "index.json") : 0;
}

/* Checks the packed size of all layers together against the limit of the unpacked size. */
static int check_sizes(const struct oci_image *i, struct ssb_error *err)
{
	uint64_t left = MAX_IMAGE_BYTES;

	for (size_t k = 0; k < i->n_layers; k++) {
		if (i->layers[k].size > left) {
			return ssb_fail(err, SSB_E_LIMIT, 0, "image",
			                "its packed layers are larger than the limit of %llu MB",
			                (unsigned long long)(MAX_IMAGE_BYTES >> 20));
		}
		left -= i->layers[k].size;
	}
	return 0;
}

static int take_layers(struct oci_image *i, const struct json_doc *doc, struct ssb_error *err)
{
	const struct json_node *list = json_member(doc, json_top(doc), "layers");

	if (!json_is(list, JSON_ARRAY) || list->n == 0 || list->n > MAX_IMAGE_LAYERS) {
		return fail_oci(err, "the manifest has no layers, or too many", i->hex);
	}
	i->layers = calloc(list->n, sizeof(*i->layers));
	if (i->layers == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "image", "out of memory");
	}
	JSON_EACH (l, doc, list) {
		if (take_descriptor(doc, l, &i->layers[i->n_layers++], err) != 0) {
			return -1;
		}
	}
	return check_sizes(i, err);
}

/* True for an absolute path without "..", "//" and "/./". */
static bool is_clean(const char *path)
{
	return path[0] == '/' && strlen(path) < MAX_PATH_BYTES && strstr(path, "/..") == NULL &&
	       strstr(path, "//") == NULL && strstr(path, "/./") == NULL;
}

/* Takes PATH and the initial directory from the image's configuration. Its other settings are
 * ignored, because only the owner may grant them. */
static int take_config(struct oci_image *i, const struct json_doc *doc, struct ssb_error *err)
{
	const struct json_node *config = json_member(doc, json_top(doc), "config");
	const struct json_node *env = json_member(doc, config, "Env");
	const char *workdir = json_string(json_member(doc, config, "WorkingDir"), "");
	bool failed = false;

	JSON_EACH (e, doc, env) {
		const char *word = json_string(e, "");
		if (strncmp(word, "PATH=", 5) == 0 && word[5] != '\0' &&
		    strlen(word) < MAX_PATH_BYTES && i->path == NULL) {
			i->path = strdup(word + 5);
			failed |= i->path == NULL;
		}
	}
	if (is_clean(workdir)) {
		i->workdir = strdup(workdir);
		failed |= i->workdir == NULL;
	}
	return failed ? ssb_fail(err, SSB_E_NOMEM, 0, "image", "out of memory") : 0;
}

static int load_image(struct oci_image *i, const char *ref, struct json_doc *doc,
                      struct ssb_error *err)
{
	struct oci_blob config;

	if (find_manifest(i, ref, doc, err) != 0 || take_layers(i, doc, err) != 0 ||
	    take_descriptor(doc, json_member(doc, json_top(doc), "config"), &config, err) != 0) {
		return -1;
	}
	return parse_blob(i->layout, &config, doc, err) != 0 ? -1 : take_config(i, doc, err);
}

int oci_open(const char *dir, const char *ref, struct oci_image *ret, struct ssb_error *err)
{
	AUTO(json_doc_done) struct json_doc doc = { 0 };
	AUTO(oci_done)
	struct oci_image i = {
		.layout = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC),
	};

	if (i.layout < 0) {
		return ssb_fail(err, SSB_E_NOT_FOUND, errno, "--image", "'%.200s' cannot be opened",
		                dir);
	}
	if (load_image(&i, ref, &doc, err) != 0) {
		return -1;
	}
	*ret = i;
	i = (struct oci_image){ .layout = -1 };
	return 0;
}

void oci_done(struct oci_image *i)
{
	own_close(&i->layout);
	free(i->layers);
	free(i->path);
	free(i->workdir);
	*i = (struct oci_image){ .layout = -1 };
}
