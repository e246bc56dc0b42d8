// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The protocols inside TLS, by ALPN (RFC 7301), so that both ends know in the handshake what comes next. IANA's registry has none for
// MPA, so the names say whose they are.
#ifndef NET_TLS_ALPN_H
#define NET_TLS_ALPN_H

#define AW_TLS_ALPN "anywarp-mpa"
#define AW_TLS_ALPN_RECORD \
	"anywarp-record" /* MPA whose FPDUs are records of TLS (docs/tls-records.md) */
#define AW_TLS_ALPN_MAX 32 /* bytes of a name */

#endif
