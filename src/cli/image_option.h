/* image_option.h - the option --image DIR[:REF]. */
#ifndef CLI_IMAGE_OPTION_H
#define CLI_IMAGE_OPTION_H

#include "cli/cli.h"

/* Unpacks the image unless that was done before, and makes it the root file system of the options.
 * Does nothing without the flag. Must be called once for a request. */
int image_option(struct request *r, struct ssb_error *err);

#endif
