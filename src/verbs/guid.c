// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The GUID is an EUI-64 made of the first Ethernet address here. Without one it is made of the
// machine's id, and without that of random bytes, and marked as locally administered.
#include "verbs/guid.h"

#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

enum {
	MAC_LEN = 6,
	GUID_LEN = 8,
	EUI_LOCAL = 0x02, /* of the first byte: locally administered */
	EUI_GROUP = 0x01,
};

static pthread_once_t guid_once = PTHREAD_ONCE_INIT;
static __be64 guid;

static void guid_find(void);
static bool guid_from_mac(uint8_t *octets);
static bool guid_from_machine_id(uint8_t *octets);

__be64 vb_guid(void)
{
	pthread_once(&guid_once, guid_find);
	return guid;
}

static void guid_find(void)
{
	uint8_t octets[GUID_LEN];

	if (!guid_from_mac(octets) && !guid_from_machine_id(octets)) {
		if (getrandom(octets, GUID_LEN, 0) != GUID_LEN)
			memset(octets, 0, GUID_LEN);
		octets[0] = (octets[0] | EUI_LOCAL) & (uint8_t)~EUI_GROUP;
	}
	memcpy(&guid, octets, sizeof(guid));
}

/* The interface with the lowest index: the order of the list is no promise. */
static bool guid_from_mac(uint8_t *octets)
{
	static const uint8_t none[MAC_LEN];
	const struct sockaddr_ll *first = NULL;
	struct ifaddrs *list;

	if (getifaddrs(&list))
		return false;
	for (const struct ifaddrs *ifa = list; ifa; ifa = ifa->ifa_next) {
		const struct sockaddr_ll *ll = (const struct sockaddr_ll *)ifa->ifa_addr;
		bool usable = ll && ll->sll_family == AF_PACKET &&
			      !(ifa->ifa_flags & IFF_LOOPBACK) && ll->sll_halen == MAC_LEN &&
			      memcmp(ll->sll_addr, none, MAC_LEN);

		if (usable && (!first || ll->sll_ifindex < first->sll_ifindex))
			first = ll;
	}
	if (first) {
		memcpy(octets, first->sll_addr, 3);
		octets[0] ^= EUI_LOCAL;
		octets[3] = 0xff;
		octets[4] = 0xfe;
		memcpy(octets + 5, first->sll_addr + 3, 3);
	}
	freeifaddrs(list);
	return first;
}

static bool guid_from_machine_id(uint8_t *octets)
{
	FILE *file = fopen("/etc/machine-id", "re");
	unsigned long long id;
	bool found;

	if (!file)
		return false;
	found = fscanf(file, "%16llx", &id) == 1 && id;
	fclose(file);
	if (!found)
		return false;
	for (int i = 0; i < GUID_LEN; i++)
		octets[i] = (uint8_t)(id >> (8 * i));
	octets[0] = (octets[0] | EUI_LOCAL) & (uint8_t)~EUI_GROUP;
	return true;
}
