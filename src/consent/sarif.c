/* sarif.c - writes findings as SARIF 2.1.0. */
#include "consent/sarif.h"

#include "base/own.h"
#include "base/percent.h"

#define SCHEMA "https://json.schemastore.org/sarif-2.1.0.json"

/* {"text": ...} */
static void add_message(struct json *j, const char *key, const char *text)
{
	json_kopen(j, key, '{');
	json_kstr(j, "text", text);
	json_close(j, '}');
}

/* Code scanning sorts by this number, which is at most 10. A higher number is worse. */
static const char *severity_of(const struct lint_rule *r)
{
	switch (r->grade) {
	case 'F':
		return "9.0";
	case 'D':
		return "7.5";
	case 'C':
		return "5.0";
	case 'B':
		return "2.0";
	default:
		return "0.0";
	}
}

static void add_rule(struct json *j, const struct lint_rule *r)
{
	json_open(j, '{');
	json_kstr(j, "id", r->id);
	json_kstr(j, "name", r->name);
	add_message(j, "shortDescription", r->text);
	add_message(j, "help", r->remedy);
	json_kopen(j, "defaultConfiguration", '{');
	json_kstr(j, "level", lint_level_name(r->level));
	json_close(j, '}');
	json_kopen(j, "properties", '{');
	json_kstr(j, "security-severity", severity_of(r));
	json_kopen(j, "tags", '[');
	json_str(j, "security");
	json_close(j, ']');
	json_close(j, '}');
	json_close(j, '}');
}

static void add_place(struct json *j, const struct lint *l, const struct lint_finding *f)
{
	auto_buf path = BUF(j->out->cap), uri = BUF(j->out->cap);

	lint_path(&path, l, f);
	buf_adds(&uri, l->dir[0] == '/' ? "file://" : "");
	percent_encode(&uri, path.data != NULL ? path.data : "", true);
	json_kopen(j, "locations", '[');
	json_open(j, '{');
	json_kopen(j, "physicalLocation", '{');
	json_kopen(j, "artifactLocation", '{');
	json_kstr(j, "uri", uri.data != NULL ? uri.data : "");
	json_close(j, '}');
	json_kopen(j, "region", '{');
	json_kuint(j, "startLine", f->line > 0 ? f->line : 1);
	json_close(j, '}');
	json_close(j, '}');
	json_close(j, '}');
	json_close(j, ']');
}

static void add_result(struct json *j, const struct lint *l, const struct lint_finding *f)
{
	json_open(j, '{');
	json_kstr(j, "ruleId", LINT_RULES[f->id].id);
	json_kuint(j, "ruleIndex", f->id);
	json_kstr(j, "level", lint_level_name(f->level));
	add_message(j, "message", f->text);
	add_place(j, l, f);
	json_close(j, '}');
}

static void add_driver(struct json *j)
{
	json_kopen(j, "tool", '{');
	json_kopen(j, "driver", '{');
	json_kstr(j, "name", "skillsandbox");
	json_kstr(j, "semanticVersion", SSB_VERSION);
	json_kopen(j, "rules", '[');
	for (size_t i = 0; i < LINT_IDS; i++) {
		add_rule(j, &LINT_RULES[i]);
	}
	json_close(j, ']');
	json_close(j, '}');
	json_close(j, '}');
}

/* Writes the grades, for which SARIF has no member. */
static void add_grades(struct json *j, const struct lint skills[], size_t n)
{
	json_kopen(j, "properties", '{');
	json_kopen(j, "grades", '[');
	for (size_t i = 0; i < n; i++) {
		char grade[] = { skills[i].grade, '\0' };
		json_open(j, '{');
		json_kstr(j, "dir", skills[i].dir);
		json_kstr(j, "grade", grade);
		json_close(j, '}');
	}
	json_close(j, ']');
	json_close(j, '}');
}

void sarif_write(struct buf *out, const struct lint skills[], size_t n)
{
	struct json j = JSON_TO(out, true);

	json_open(&j, '{');
	json_kstr(&j, "$schema", SCHEMA);
	json_kstr(&j, "version", "2.1.0");
	json_kopen(&j, "runs", '[');
	json_open(&j, '{');
	add_driver(&j);
	json_kstr(&j, "columnKind", "utf16CodeUnits");
	json_kopen(&j, "results", '[');
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < skills[i].n; k++) {
			add_result(&j, &skills[i], &skills[i].v[k]);
		}
	}
	json_close(&j, ']');
	add_grades(&j, skills, n);
	json_close(&j, '}');
	json_close(&j, ']');
	json_close(&j, '}');
	buf_addc(out, '\n');
}
