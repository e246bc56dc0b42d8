// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Powers of x modulo the polynomial of CRC32c, bit-reflected: the factors by which a carry-less multiplication moves octets of a
// message n octets on. FIRST is x^(8n + 31), for the first 8 of 16 octets, SECOND x^(8n - 33), for the others or for a raw register. The
// exponents allow for what the product of two reflected words is: one bit longer, and at the upper end of the word that it is read as.
// tests/unit/test_crc.c computes them from the polynomial.
#ifndef CRC_POWERS_H
#define CRC_POWERS_H

#define AW_CRC_FIRST_16 0xf20c0dfe
#define AW_CRC_SECOND_16 0x493c7d27
#define AW_CRC_FIRST_32 0x3da6d0cb
#define AW_CRC_SECOND_32 0xba4fc28e
#define AW_CRC_FIRST_64 0x740eef02
#define AW_CRC_SECOND_64 0x9e4addf8
#define AW_CRC_FIRST_128 0x6992cea2
#define AW_CRC_SECOND_128 0x0d3b6092
#define AW_CRC_FIRST_256 0xdcb17aa4
#define AW_CRC_SECOND_256 0xb9e02b86
#define AW_CRC_SECOND_1024 0x170076fa
#define AW_CRC_SECOND_2048 0xa51b6135

#endif
