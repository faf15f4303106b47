#include "skill/skill.h"

#include "base/own.h"

const char *skill_format_name(enum skill_format f)
{
	static const char *const NAMES[] = { "skillsandbox.yaml", "sidecar", "SKILL.md",
		                             "skillware" };

	return (size_t)f < ARRAY_LEN(NAMES) ? NAMES[f] : "?";
}
