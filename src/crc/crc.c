// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The choice of a form. Any thread, also in a signal handler, may make it first.
#include "crc/crc.h"

#include "crc/form.h"

#include <stdatomic.h>

/* Relaxed everywhere: all threads choose the same form, and forms are constants. */
static const struct aw_crc_form *_Atomic chosen;

static __attribute__((noinline, cold)) const struct aw_crc_form *form_choose(void)
{
	const struct aw_crc_form *form = aw_crc_forms;

	while (!form->is_there())
		form++;
	atomic_store_explicit(&chosen, form, memory_order_relaxed);
	return form;
}

static const struct aw_crc_form *form_get(void)
{
	const struct aw_crc_form *form = atomic_load_explicit(&chosen, memory_order_relaxed);

	return form ? form : form_choose();
}

uint32_t aw_crc32c(uint32_t crc, const void *data, size_t len)
{
	return form_get()->fold(crc, data, len);
}

uint32_t aw_crc32c_copy(uint32_t crc, void *dst, const void *src, size_t len)
{
	return form_get()->copy(crc, dst, src, len);
}

const char *aw_crc32c_instructions(void)
{
	return form_get()->name;
}
