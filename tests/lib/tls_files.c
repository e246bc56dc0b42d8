// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "tls_files.h"

#include <stdio.h>
#include <stdlib.h>

#define PATHS 4

static char folder[] = "/tmp/anywarp-unit-tls-XXXXXX";

static const char make_files[] =
	"cd %s && { key='-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes' && "
	"for ca in ca foe-ca; do openssl req -x509 $key -days 2 -subj /CN=$ca -keyout $ca.key -out $ca.pem || exit; done && "
	"openssl req -new $key -subj /CN=own -keyout own.key -out own.csr && "
	"while read -r cert ca days name; do printf 'subjectAltName=DNS:%%s\\n' $name >ext && "
	"openssl x509 -req -in own.csr -CA $ca.pem -CAkey $ca.key -CAcreateserial -days $days -extfile ext -out $cert.pem || exit; "
	"done; } >log 2>&1 <<-'END'\n"
	"own ca 2 " TLS_FILES_NAME "\n"
	"old ca -1 " TLS_FILES_NAME "\n"
	"other ca 2 other\n"
	"foe foe-ca 2 " TLS_FILES_NAME "\n"
	"END\n";

char *tls_files_path(const char *name)
{
	static char paths[PATHS][64];
	static unsigned int next;
	char *path = paths[next++ % PATHS];

	snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
	return path;
}

int tls_files_make(void **state)
{
	char command[1536];

	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(command, sizeof(command), make_files, folder);
	setenv("ANYWARP_TLS", "require", 1);
	setenv("ANYWARP_TLS_CERT", tls_files_path("own.pem"), 1);
	setenv("ANYWARP_TLS_KEY", tls_files_path("own.key"), 1);
	setenv("ANYWARP_TLS_CA", tls_files_path("ca.pem"), 1);
	setenv("ANYWARP_TLS_NAME", TLS_FILES_NAME, 1);
	return system(command);
}

int tls_files_remove(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}
