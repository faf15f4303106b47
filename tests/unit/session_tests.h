/* session_tests.h - runs the tests of one program on each available store. */
#ifndef TESTS_SESSION_TESTS_H
#define TESTS_SESSION_TESTS_H

#include <stdlib.h>

#include "unit.h"
#include "session_world.h"

#define USD(x) ((micros)((x)*1000000 + 0.5))

/* A small policy: low limits for every resource. The session is killed when its money is spent. */
#define SMALL                                                                                      \
	"budget:\n  max_cost_per_session: 1.00\n  max_cost_per_action: 0.60\n"                     \
	"  alert_at: 0.80\n  on_exceed: kill\n"                                                    \
	"session:\n  max_duration: 60s\n  max_actions: 3\n"

static const char *store; /* NULL: SQLite */

static inline int open_world(void **state)
{
	world_open(store);
	return 0;
}

static inline int close_world(void **state)
{
	world_close();
	return 0;
}

/* Returns the number of failed tests, on SQLite and on the PostgreSQL of SSB_TEST_POSTGRES. */
#define ON_EACH_STORE(tests, open)                                                                 \
	({                                                                                         \
		int failed_ = cmocka_run_group_tests_name("SQLite", tests, open, close_world);     \
		store = getenv("SSB_TEST_POSTGRES");                                               \
		if (store != NULL) {                                                               \
			failed_ += cmocka_run_group_tests_name("PostgreSQL", tests, open,          \
			                                       close_world);                       \
		}                                                                                  \
		failed_;                                                                           \
	})

#endif
