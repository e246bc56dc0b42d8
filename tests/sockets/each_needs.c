// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// each_needs PORT: a program that does nothing but need each_library.
#include <stdio.h>

int main(void)
{
	puts("used");
	return 0;
}
