/* progress.h - shows on a terminal that a skill is running. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

/* Returns when the run of this record has ended. The line is then removed. */
void progress_follow(int record);

#endif
