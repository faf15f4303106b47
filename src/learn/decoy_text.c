/* decoy_text.c - what is in decoys, and the values of variables. */
#include <assert.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "learn/decoy.h"

/* Follows the canary in the value of a variable; not a hex digit. */
#define VARIABLE_MARK 'v'

/* "%" in `text` is replaced by the canary. The first row whose pattern matches the whole path or
 * name is used. Patterns are those of fnmatch(). */
struct decoy_row {
	const char *pattern;
	const char *text;
};

static const struct decoy_row FILES[] = {
	{ "*/.ssh/*.pub", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI% decoy@localhost\n" },
	{ "*/.ssh/config", "Host decoy\n  HostName decoy.invalid\n  User %\n" },
	{ "*/.ssh/known_hosts", "decoy.invalid ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI%\n" },
	{ "*/.ssh/authorized_keys", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI% decoy@localhost\n" },
	{ "*/.ssh/*", "-----BEGIN OPENSSH PRIVATE KEY-----\n"
	              "b3BlbnNzaC1rZXktdjEAAAAA%\n"
	              "-----END OPENSSH PRIVATE KEY-----\n" },
	{ "*/.aws/credentials", "[default]\naws_access_key_id = AKIADECOYDECOYDECOY0\n"
	                        "aws_secret_access_key = %\n" },
	{ "*/.aws/config", "[default]\nregion = us-east-1\n# %\n" },
	{ "*/.netrc", "machine decoy.invalid login decoy password %\n" },
	{ "*/.git-credentials", "https://decoy:%@decoy.invalid\n" },
	{ "*/.npmrc", "//registry.npmjs.org/:_authToken=npm_%\n" },
	{ "*/.pypirc", "[pypi]\nusername = __token__\npassword = pypi-%\n" },
	{ "*/.pgpass", "decoy.invalid:5432:*:decoy:%\n" },
	{ "*/.docker/config.json", "{\"auths\": {\"decoy.invalid\": {\"auth\": \"%\"}}}\n" },
	{ "*/.kube/config", "apiVersion: v1\nkind: Config\nusers:\n- name: decoy\n  user:\n"
	                    "    token: %\n" },
	{ "*/gh/hosts.yml", "github.com:\n    user: decoy\n    oauth_token: gho_%\n" },
	{ "*/.env*", "API_KEY=%\nDATABASE_URL=postgres://decoy:%@decoy.invalid:5432/decoy\n" },
	{ "*.json", "{\"client_id\": \"decoy\", \"client_secret\": \"%\"}\n" },
	{ "*_history", "export API_KEY=%\n" },
	{ "*", "%\n" },
};

static const char *const SSH[] = { "id_rsa", "id_ed25519", "config", "known_hosts", NULL };
static const char *const AWS[] = { "credentials", "config", NULL };
static const char *const GH[] = { "hosts.yml", NULL };
static const char *const CONFIG[] = { "config", NULL };
static const char *const CONFIG_JSON[] = { "config.json", NULL };
static const char *const GCLOUD[] = { "application_default_credentials.json", NULL };
static const char *const NOTHING[] = { NULL };

static const struct {
	const char *pattern;
	const char *const *names;
} DIRECTORIES[] = {
	{ "*/.ssh", SSH },
	{ "*/.aws", AWS },
	{ "*/.config/gh", GH },
	{ "*/.kube", CONFIG },
	{ "*/.docker", CONFIG_JSON },
	{ "*/.config/gcloud", GCLOUD },
	{ "*/.gnupg", NOTHING },
	{ "*/.mozilla", NOTHING },
	{ "*/.mozilla/firefox", NOTHING },
	{ "*/.config/google-chrome", NOTHING },
	{ "*/.config/chromium", NOTHING },
};

/* If `text` is NULL, the variable controls programs and gets no made-up value. */
static const struct decoy_row VARIABLES[] = {
	{ "PATH", NULL },
	{ "HOME", NULL },
	{ "TMPDIR", NULL },
	{ "TMP", NULL },
	{ "TEMP", NULL },
	{ "LANG*", NULL },
	{ "LC_*", NULL },
	{ "LD_*", NULL },
	{ "GLIBC_TUNABLES", NULL },
	{ "GCONV_PATH", NULL },
	{ "SKILLSANDBOX_*", NULL },
	{ "PYTHON*", NULL },
	{ "NODE_*", NULL },
	{ "PERL*", NULL },
	{ "RUBY*", NULL },
	{ "JAVA*", NULL },
	{ "BASH*", NULL },
	{ "ENV", NULL },
	{ "IFS", NULL },
	{ "SHELL", NULL },
	{ "USER", NULL },
	{ "LOGNAME", NULL },
	{ "PWD", NULL },
	{ "OLDPWD", NULL },
	{ "TERM*", NULL },
	{ "COLUMNS", NULL },
	{ "LINES", NULL },
	{ "TZ", NULL },
	{ "EDITOR", NULL },
	{ "VISUAL", NULL },
	{ "PAGER", NULL },
	{ "CI", NULL },
	{ "*DEBUG*", NULL },
	{ "*VERBOSE*", NULL },
	{ "*LOG_LEVEL*", NULL },
	{ "NO_COLOR", NULL },
	{ "DISPLAY", NULL },
	{ "SSH_*", NULL },
	{ "DBUS_*", NULL },
	{ "XDG_*", NULL },
	{ "SSL_CERT_*", NULL },
	{ "*CA_BUNDLE", NULL },
	{ "*[Pp][Rr][Oo][Xx][Yy]", NULL },
	{ "AWS_ACCESS_KEY_ID", "AKIADECOYDECOYDECOY0" },
	{ "*REGION", "us-east-1" },
	{ "GITHUB_TOKEN", "ghp_%" },
	{ "GH_TOKEN", "ghp_%" },
	{ "GITLAB_TOKEN", "glpat-%" },
	{ "OPENAI_*KEY", "sk-%" },
	{ "ANTHROPIC_*KEY", "sk-ant-%" },
	{ "STRIPE_*", "sk_test_%" },
	{ "SLACK_*TOKEN", "xoxb-%" },
	{ "HF_TOKEN", "hf_%" },
	{ "DATABASE_URL", "postgres://decoy:%@decoy.invalid:5432/decoy" },
	{ "*MONGO*UR[IL]", "mongodb://decoy:%@decoy.invalid:27017/decoy" },
	{ "*REDIS*URL", "redis://:%@decoy.invalid:6379/0" },
	{ "*UR[IL]", "https://decoy.invalid/" },
	{ "*ENDPOINT", "https://decoy.invalid/" },
	{ "*WEBHOOK*", "https://decoy.invalid/%" },
	{ "*HOST", "decoy.invalid" },
	{ "*HOSTNAME", "decoy.invalid" },
	{ "*PORT", "443" },
	{ "*EMAIL*", "decoy@decoy.invalid" },
	{ "*USER*", "decoy" },
	{ "*_PATH", "/tmp/decoy" },
	{ "*_DIR", "/tmp" },
	{ "*_FILE", "/tmp/decoy" },
	{ "*", "%" },
};

static void fill_canary(struct buf *out, const char *text, const char *canary)
{
	for (; *text != '\0'; text++) {
		if (*text == '%') {
			buf_adds(out, canary);
		} else {
			buf_addc(out, *text);
		}
	}
}

static const struct decoy_row *find_row(const struct decoy_row *rows, size_t n, const char *s)
{
	return ARRAY_FIND(row, rows, n, fnmatch(row->pattern, s, 0) == 0);
}

void decoy_text(struct buf *out, const char *path, const char *canary)
{
	const struct decoy_row *r = find_row(FILES, ARRAY_LEN(FILES), path);

	assert(canary[0] != '\0');
	fill_canary(out, r != NULL ? r->text : "%\n", canary);
}

const char *const *decoy_names(const char *path)
{
	for (size_t i = 0; i < ARRAY_LEN(DIRECTORIES); i++) {
		if (fnmatch(DIRECTORIES[i].pattern, path, 0) == 0) {
			return DIRECTORIES[i].names;
		}
	}
	return NULL;
}

bool decoy_variable(const struct decoys *d, const char *name, struct buf *out)
{
	const struct decoy_row *r = find_row(VARIABLES, ARRAY_LEN(VARIABLES), name);

	if (r == NULL || r->text == NULL) {
		return false;
	}
	char word[CANARY_BYTES + 1];
	(void)snprintf(word, sizeof(word), "%s%c", d->canary, VARIABLE_MARK);
	fill_canary(out, r->text, word);
	return true;
}

bool decoys_shown(const struct decoys *d, const char *text, size_t len)
{
	size_t n = strlen(d->canary);

	for (const char *p = text; (p = memmem(p, len - (size_t)(p - text), d->canary, n)) != NULL;
	     p += n) {
		if (p + n == text + len || p[n] != VARIABLE_MARK) {
			return true;
		}
	}
	return false;
}
