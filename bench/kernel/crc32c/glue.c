// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// CRC32c with the processor's instructions, by the kernel's own crc_pcl: User Mode Linux has no crc32c-intel, which
// is what a machine would use. Registers need not be saved: its programs run in processes of their own. For
// measurements alone.
#include <crypto/internal/hash.h>
#include <linux/module.h>

#define CPUID_PCLMUL (1u << 1)
#define CPUID_SSE42 (1u << 20)
#define CRC_OCTETS 4
#define PRIORITY 200 /* above crc32c-generic */
#define WIDE_MIN 512 /* as crc32c-intel's: from here on crc_pcl is the faster one */

asmlinkage unsigned int crc_pcl(const u8 *p, int len, unsigned int crc);

static u32 fold(u32 crc, const u8 *p, unsigned int len)
{
	u64 wide = crc;

	if (len >= WIDE_MIN)
		return crc_pcl(p, len, crc);

	for (; len >= sizeof(u64); len -= sizeof(u64), p += sizeof(u64))
		asm("crc32q %1, %0" : "+r"(wide) : "m"(*(const u64 *)p));
	crc = wide;
	for (; len > 0; len--, p++)
		asm("crc32b %1, %0" : "+r"(crc) : "m"(*p));
	return crc;
}

static int crc_init(struct shash_desc *desc)
{
	*(u32 *)shash_desc_ctx(desc) = ~0u;
	return 0;
}

static int crc_update(struct shash_desc *desc, const u8 *data, unsigned int len)
{
	u32 *crc = shash_desc_ctx(desc);

	*crc = fold(*crc, data, len);
	return 0;
}

static int crc_final(struct shash_desc *desc, u8 *out)
{
	*(__le32 *)out = cpu_to_le32(~*(u32 *)shash_desc_ctx(desc));
	return 0;
}

static struct shash_alg alg = {
	.digestsize = CRC_OCTETS,
	.init = crc_init,
	.update = crc_update,
	.final = crc_final,
	.descsize = CRC_OCTETS,
	.base = {
		.cra_name = "crc32c",
		.cra_driver_name = "crc32c-x86",
		.cra_priority = PRIORITY,
		.cra_blocksize = 1,
		.cra_module = THIS_MODULE,
	},
};

static bool has_instructions(void)
{
	u32 eax = 1, ebx, ecx = 0, edx;

	asm volatile("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
	return (ecx & CPUID_SSE42) && (ecx & CPUID_PCLMUL);
}

static int __init crc_load(void)
{
	return has_instructions() ? crypto_register_shash(&alg) : -ENODEV;
}

static void __exit crc_unload(void)
{
	crypto_unregister_shash(&alg);
}

module_init(crc_load);
module_exit(crc_unload);
MODULE_LICENSE("Dual BSD/GPL");
MODULE_DESCRIPTION(
	"CRC32c with the processor's instructions, for measurements under User Mode Linux");
MODULE_ALIAS_CRYPTO("crc32c");
