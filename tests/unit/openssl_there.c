// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What OpenSSL's own headers say.
#include "openssl_numbers.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include "base/array.h"
#include "cli/doctor_crypto_functions.h"
#include "crypto/libcrypto_functions.h"
#include "net/tls/openssl_functions.h"

#define SAME(result, name, parameters)                                              \
	_Static_assert(__builtin_types_compatible_p(__typeof__(name),               \
						    __typeof__(result) parameters), \
		       #name);
AW_OPENSSL_FUNCTIONS(SAME)
AW_LIBCRYPTO_FUNCTIONS(SAME)
AW_CRYPTO_FUNCTIONS(SAME)

_Static_assert(BIO_TYPE_SOURCE_SINK == 0x0400, "net/tls/tls.c has it so");

const struct openssl_number openssl_numbers_there[] = { OPENSSL_NUMBERS(OPENSSL_NUMBER) };
const size_t openssl_numbers_there_count = ARRAY_LEN(openssl_numbers_there);

int openssl_reason_there(unsigned long error)
{
	return ERR_GET_REASON(error);
}

unsigned long openssl_ssl_error_there(int reason)
{
	return ERR_PACK(ERR_LIB_SSL, 0, reason);
}
