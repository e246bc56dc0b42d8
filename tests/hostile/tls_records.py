# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Records of TLS 1.3 that no library would make: sealed here by the traffic secret that a key log shows, of any type and length,
and the messages of a handshake that they may hold. RFC 8446 4, 5 and 7."""

import ctypes
import ctypes.util
import hashlib
import hmac
import struct

CHANGE_CIPHER_SPEC, ALERT, HANDSHAKE, DATA, HEARTBEAT = 20, 21, 22, 23, 24
HELLO_REQUEST, CLIENT_HELLO, NEW_SESSION_TICKET, END_OF_EARLY_DATA, ENCRYPTED_EXTENSIONS = 0, 1, 4, 5, 8
CERTIFICATE, CERTIFICATE_REQUEST, FINISHED, KEY_UPDATE = 11, 13, 20, 24
CONTENT_MAX = 1 << 14
TAG = 16
SUITES = {"TLS_AES_128_GCM_SHA256": (16, hashlib.sha256, "EVP_aes_128_gcm"),
          "TLS_AES_256_GCM_SHA384": (32, hashlib.sha384, "EVP_aes_256_gcm"),
          "TLS_CHACHA20_POLY1305_SHA256": (32, hashlib.sha256, "EVP_chacha20_poly1305")}
GET_TAG = 0x10  # EVP_CTRL_AEAD_GET_TAG

crypto = ctypes.CDLL(ctypes.util.find_library("crypto"))
for name in ("EVP_CIPHER_CTX_new", *(suite[2] for suite in SUITES.values())):
    getattr(crypto, name).restype = ctypes.c_void_p


def seal_aead(cipher, key, nonce, header, plain):
    """The ciphertext and its tag."""
    context = ctypes.c_void_p(crypto.EVP_CIPHER_CTX_new())
    out, tag, count = ctypes.create_string_buffer(len(plain) + 16), ctypes.create_string_buffer(TAG), ctypes.c_int()
    try:
        assert crypto.EVP_EncryptInit_ex(context, ctypes.c_void_p(getattr(crypto, cipher)()), None, key, nonce) == 1
        assert crypto.EVP_EncryptUpdate(context, None, ctypes.byref(count), header, len(header)) == 1
        assert crypto.EVP_EncryptUpdate(context, out, ctypes.byref(count), plain, len(plain)) == 1
        sealed = out.raw[:count.value]
        assert crypto.EVP_EncryptFinal_ex(context, out, ctypes.byref(count)) == 1
        assert crypto.EVP_CIPHER_CTX_ctrl(context, GET_TAG, TAG, tag) == 1
    finally:
        crypto.EVP_CIPHER_CTX_free(context)
    return sealed + tag.raw


def message(kind, body=b""):
    """Of the handshake (RFC 8446 4)."""
    return bytes([kind]) + len(body).to_bytes(3, "big") + body


def clear(kind, body):
    """A record as it is before there are keys."""
    return bytes([kind, 3, 3]) + struct.pack(">H", len(body)) + body


def key_update(requested):
    return message(KEY_UPDATE, bytes([requested]))


def new_session_ticket(number):
    return message(NEW_SESSION_TICKET, struct.pack(">II", 7200, number) + b"\x04" + struct.pack(">I", number) +
                   struct.pack(">H", 64) + bytes(64) + bytes(2))


def certificate_request():
    schemes = struct.pack(">HHHH", 13, 4, 2, 0x0403)
    return message(CERTIFICATE_REQUEST, b"\x04four" + struct.pack(">H", len(schemes)) + schemes)


class Sealer:
    """One direction from where the library left it: behind so many records under this secret."""

    def __init__(self, suite, secret, sealed):
        self.size, self.hash, self.cipher = SUITES[suite]
        self.begin(secret)
        self.number = sealed

    def begin(self, secret):
        self.secret, self.number = secret, 0
        self.key, self.iv = self.expand("key", self.size), self.expand("iv", 12)

    def expand(self, label, size):
        """HKDF-Expand-Label with no context, of one block at most."""
        name = b"tls13 " + label.encode()
        info = struct.pack(">H", size) + bytes([len(name)]) + name + b"\0\1"
        return hmac.new(self.secret, info, self.hash).digest()[:size]

    def renew(self):
        """The keys behind a KeyUpdate (RFC 8446 7.2)."""
        self.begin(self.expand("traffic upd", self.hash().digest_size))

    def record(self, kind, content, padding=0):
        """kind None: there is no type at all, only padding."""
        inner = content + (bytes([kind]) if kind is not None else b"") + bytes(padding)
        header = bytes([DATA, 3, 3]) + struct.pack(">H", len(inner) + TAG)
        nonce = (int.from_bytes(self.iv, "big") ^ self.number).to_bytes(12, "big")
        self.number += 1
        return header + seal_aead(self.cipher, self.key, nonce, header, inner)


def records_in(octets):
    """How many records these are."""
    count = at = 0
    while at < len(octets):
        at, count = at + 5 + int.from_bytes(octets[at + 3:at + 5], "big"), count + 1
    return count
