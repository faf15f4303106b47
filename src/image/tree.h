/* tree.h - directories with all that is in them, gone. No symlink is followed. */
#ifndef IMAGE_TREE_H
#define IMAGE_TREE_H

/* Both 0, also where nothing is there; -1 with errno. */
int tree_remove(int parent_fd, const char *name);
int tree_empty(int dir_fd); /* borrows a directory that can be listed */

#endif
