#include "policy/secrets.h"

#include <stdbool.h>
#include <string.h>

#include "base/own.h"

/* Keys to what is the owner's whatever skill is run. */
static const struct {
	const char *name;
	const char *opens;
} CREDENTIALS[] = {
	{ "AWS_ACCESS_KEY_ID", "AWS" },
	{ "AWS_SECRET_ACCESS_KEY", "AWS" },
	{ "AWS_SESSION_TOKEN", "AWS" },
	{ "AWS_SECURITY_TOKEN", "AWS" },
	{ "AZURE_CLIENT_SECRET", "Azure" },
	{ "GOOGLE_APPLICATION_CREDENTIALS", "Google Cloud" },
	{ "DIGITALOCEAN_ACCESS_TOKEN", "DigitalOcean" },
	{ "CLOUDFLARE_API_TOKEN", "Cloudflare" },
	{ "GITHUB_TOKEN", "GitHub" },
	{ "GH_TOKEN", "GitHub" },
	{ "GITHUB_PAT", "GitHub" },
	{ "GITLAB_TOKEN", "GitLab" },
	{ "NPM_TOKEN", "package publishing" },
	{ "NODE_AUTH_TOKEN", "package publishing" },
	{ "PYPI_TOKEN", "package publishing" },
	{ "TWINE_PASSWORD", "package publishing" },
	{ "CARGO_REGISTRY_TOKEN", "package publishing" },
	{ "DOCKER_PASSWORD", "image publishing" },
	{ "OPENAI_API_KEY", "OpenAI" },
	{ "AZURE_OPENAI_API_KEY", "Azure" },
	{ "ANTHROPIC_API_KEY", "Anthropic" },
	{ "GOOGLE_API_KEY", "Google" },
	{ "GEMINI_API_KEY", "Google" },
	{ "STRIPE_SECRET_KEY", "Stripe" },
	{ "SLACK_TOKEN", "Slack" },
	{ "SLACK_BOT_TOKEN", "Slack" },
	{ "DATABASE_URL", "a database" },
	{ "POSTGRES_PASSWORD", "a database" },
	{ "PGPASSWORD", "a database" },
	{ "MYSQL_PASSWORD", "a database" },
	{ "VAULT_TOKEN", "Vault" },
	{ "HF_TOKEN", "Hugging Face" },
};

/* Whose secret a name speaks of is seldom said by its end alone: a skill's own key for its
 * own service is what it has a manifest for. The first row that matches counts. */
static const struct {
	const char *part;
	enum secret kind;
} PARTS[] = {
	{ "PASSW", SECRET_OWNERS },       { "PASSPHRASE", SECRET_OWNERS },
	{ "PRIVATE_KEY", SECRET_OWNERS }, { "CREDENTIAL", SECRET_OWNERS },
	{ "SECRET", SECRET_OWNERS },      { "TOKEN", SECRET_SOUNDS },
	{ "APIKEY", SECRET_SOUNDS },      { "_KEY", SECRET_SOUNDS },
};

/* Of these places every key is the owner's. */
static const char *const OWNERS[] = { "AWS_", "AZURE_", "GCP_", "GOOGLE_", "GITHUB_", "GITLAB_",
	                              "SSH_", "GPG_",   "NPM_", "PYPI_",   "DOCKER_", "KUBE" };
static const char *const KEYS[] = { "TOKEN", "KEY", "AUTH" };

static bool is_owners(const char *name)
{
	bool owners = false;

	for (size_t i = 0; i < ARRAY_LEN(OWNERS) && !owners; i++) {
		owners = strncasecmp(name, OWNERS[i], strlen(OWNERS[i])) == 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(KEYS) && owners; i++) {
		if (strcasestr(name, KEYS[i]) != NULL) {
			return true;
		}
	}
	return false;
}

enum secret secret_of(const char *name, const char **ret_opens)
{
	for (size_t i = 0; i < ARRAY_LEN(CREDENTIALS); i++) {
		if (strcmp(CREDENTIALS[i].name, name) == 0) {
			if (ret_opens != NULL) {
				*ret_opens = CREDENTIALS[i].opens;
			}
			return SECRET_CREDENTIAL;
		}
	}
	if (is_owners(name)) {
		return SECRET_OWNERS;
	}
	for (size_t i = 0; i < ARRAY_LEN(PARTS); i++) {
		if (strcasestr(name, PARTS[i].part) != NULL) {
			return PARTS[i].kind;
		}
	}
	return SECRET_NOT;
}
