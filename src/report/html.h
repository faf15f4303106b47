/* html.h - a report of one run as one HTML file.
 *
 * The file contains no script and asks for nothing: its policy allows only its own style. Every
 * text is made visible first and then escaped for HTML, so that a name from a skill stays a text.
 */
#ifndef REPORT_HTML_H
#define REPORT_HTML_H

#include "report/overview.h"

struct html_report {
	const struct overview *view;
	const struct line *run; /* the line `run` of the record; NULL: there is none */
	const char *verified;   /* what the check of the record found, in words */
	bool sound;             /* the check found nothing wrong */
};

void html_write(struct buf *out, const struct html_report *r);

#endif
