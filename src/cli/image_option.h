/* image_option.h - --image DIR[:REF] on the way to a plan. */
#ifndef CLI_IMAGE_OPTION_H
#define CLI_IMAGE_OPTION_H

#include "cli/cli.h"

/* Unpacks the image unless that was done, and makes it the options' root file system.
 * Nothing without the flag. Once for a request. */
int image_option(struct request *r, struct ssb_error *err);

#endif
