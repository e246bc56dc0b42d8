// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// each_needs PORT: a program that does nothing but need each_library.
int main(void)
{
	return 0;
}
