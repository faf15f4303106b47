/* image_option.h - the option --image DIR[:REF]. */
#ifndef CLI_IMAGE_OPTION_H
#define CLI_IMAGE_OPTION_H

#include "cli/cli.h"

/* Unpacks the image if that was not done before, and makes it the root file system in the options.
 * Does nothing without --image. Must not be called twice for the same request. */
int image_option(struct request *r, struct ssb_error *err);

#endif
