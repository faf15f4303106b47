/* served_resources.h - what the files about resources share. */
#ifndef SERVE_SERVED_RESOURCES_H
#define SERVE_SERVED_RESOURCES_H

#include "serve/serve.h"

struct resource_template {
	const char *uri; /* with {id} or {name} in it */
	const char *name;
	const char *description;
	const char *type;
};

extern const struct resource_template RESOURCE_TEMPLATES[];
extern const size_t N_RESOURCE_TEMPLATES;

#endif
