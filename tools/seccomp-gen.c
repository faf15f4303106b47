/* seccomp-gen.c - writes the compiled filters; the build runs it.
 *
 *   seccomp-gen blobs ARCH         C source with the filters of ARCH, to stdout
 *   seccomp-gen golden DIRECTORY   DIRECTORY/ARCH.txt for every architecture */
#include <stdlib.h>
#include <string.h>

#include "seccomp_compile.h"

static int put_array(const struct seccomp_arch *arch, unsigned profile, unsigned reach,
                     bool observed)
{
	static struct sock_filter insns[BPF_MAXINSNS];
	size_t n;

	if (seccomp_compile(arch, (struct seccomp_which){ profile, reach, observed }, insns, &n) !=
	    0) {
		return -1;
	}
	printf("static const struct sock_filter %c_%x_%x[%zu] = {\n", observed ? 'O' : 'F', profile,
	       reach, n);
	for (size_t i = 0; i < n; i++) {
		printf("\t{ 0x%04x, %u, %u, 0x%08x },\n", insns[i].code, insns[i].jt, insns[i].jf,
		       insns[i].k);
	}
	printf("};\n\n");
	return 0;
}

static void put_entry(unsigned profile, unsigned reach, bool observed)
{
	char name[32];

	snprintf(name, sizeof(name), "%c_%x_%x", observed ? 'O' : 'F', profile, reach);
	printf("{ %s, sizeof(%s) / sizeof(%s[0]) }", name, name, name);
}

static void put_table(const char *name, bool observed)
{
	printf("const struct seccomp_blob %s[SECCOMP_N_PROFILES][SECCOMP_N_REACHES] = {\n", name);
	for (unsigned p = 0; p < SECCOMP_N_PROFILES; p++) {
		printf("\t{\n");
		for (unsigned r = 0; r < SECCOMP_N_REACHES; r++) {
			printf("\t\t");
			put_entry(1U << p, 1U << r, observed);
			printf(",\n");
		}
		printf("\t},\n");
	}
	printf("};\n\n");
}

/* Writes the names of all calls, so that the trace can name a refused call. They are one string,
 * because a table of pointers would have to be relocated at every start. */
static void put_names(const struct seccomp_arch *arch)
{
	printf("const char seccomp_call_names[] =\n");
	for (int nr = 0; nr < SECCOMP_N_NAMES; nr++) {
		char name[40];
		seccomp_name(arch, nr, name, sizeof(name));
		printf("\t\"%s\\0\"\n", name);
	}
	printf("\t;\n\n");
}

static int blobs(const struct seccomp_arch *arch)
{
	printf("/* The filters of %s, written by seccomp-gen from seccomp_rules.c. */\n"
	       "#include <linux/filter.h>\n\n#include \"os/seccomp.h\"\n\n",
	       arch->name);
	for (unsigned p = 0; p < SECCOMP_N_PROFILES; p++) {
		for (unsigned r = 0; r < SECCOMP_N_REACHES; r++) {
			if (put_array(arch, 1U << p, 1U << r, false) != 0 ||
			    put_array(arch, 1U << p, 1U << r, true) != 0) {
				return -1;
			}
		}
	}
	if (put_array(arch, IN_INIT, TO_UNIX, false) != 0 ||
	    put_array(arch, IN_BROKER, TO_UNIX, false) != 0 ||
	    put_array(arch, IN_DIALLER, TO_UNIX, false) != 0 ||
	    put_array(arch, IN_MAKER, TO_UNIX, false) != 0) {
		return -1;
	}
	put_table("seccomp_blobs", false);
	put_table("seccomp_observed_blobs", true);
	put_names(arch);
	printf("const struct seccomp_blob seccomp_init_blob = ");
	put_entry(IN_INIT, TO_UNIX, false);
	printf(";\n\nconst struct seccomp_blob seccomp_broker_blob = ");
	put_entry(IN_BROKER, TO_UNIX, false);
	printf(";\n\nconst struct seccomp_blob seccomp_dialler_blob = ");
	put_entry(IN_DIALLER, TO_UNIX, false);
	printf(";\n\nconst struct seccomp_blob seccomp_maker_blob = ");
	put_entry(IN_MAKER, TO_UNIX, false);
	printf(";\n");
	return 0;
}

static int golden(const char *dir)
{
	for (size_t i = 0; i < SECCOMP_N_ARCHES; i++) {
		char path[4096];
		snprintf(path, sizeof(path), "%s/%s.txt", dir, SECCOMP_ARCHES[i].name);
		FILE *out = fopen(path, "we");
		if (out == NULL) {
			perror(path);
			return -1;
		}
		int r = seccomp_dump(&SECCOMP_ARCHES[i], out);
		if (fclose(out) != 0 || r != 0) {
			return -1;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	const struct seccomp_arch *arch = argc == 3 ? seccomp_arch_find(argv[2]) : NULL;

	if (arch != NULL && strcmp(argv[1], "blobs") == 0) {
		return blobs(arch) == 0 && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
	}
	if (argc == 3 && strcmp(argv[1], "golden") == 0) {
		return golden(argv[2]) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
	}
	fprintf(stderr, "usage: seccomp-gen blobs x86_64|aarch64 | golden DIRECTORY\n");
	return 2;
}
