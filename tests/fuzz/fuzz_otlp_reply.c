/* Reads a collector's answer of arbitrary bytes: the message about rejected data (partial success)
 * in both encodings, and the lines of the head. */
#include <string.h>

#include "fuzz.h"
#include "otel/otlp.h"
#include "otel/otlp_send.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct otlp_format *const FORMATS[] = { &OTLP_PROTO, &OTLP_JSON };
	char *exact = malloc(size > 0 ? size : 1);

	must(exact != NULL);
	if (size > 0) {
		memcpy(exact, data, size);
	}
	for (size_t i = 0; i < 2; i++) {
		struct otlp_partial p;
		memset(&p, 0x5a, sizeof(p));
		if (FORMATS[i]->partial(exact, size, &p)) {
			must(memchr(p.why, '\0', sizeof(p.why)) != NULL);
		} else {
			must(p.why[0] == 0x5a); /* a failure must leave it unchanged */
		}
	}
	must(otlp_retry_after(exact, size) >= -1);
	free(exact);
	return 0;
}
