// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// siw has the same driver_id: at its exit it unregisters every device of that id, and its netdev
// notifier takes each of them for one of its own. So the two are never loaded together.
#include "kmod/module/module.h"

#include <linux/kobject.h>
#include <linux/module.h>

bool awk_siw_is_loaded(void)
{
	struct kobject *siw = kset_find_obj(THIS_MODULE->mkobj.kobj.kset, "siw");

	kobject_put(siw);
	return siw;
}

static int on_module(struct notifier_block *nb, unsigned long state, void *data)
{
	const struct module *mod = data;

	if (state != MODULE_STATE_COMING || strcmp(mod->name, "siw") != 0)
		return NOTIFY_DONE;
	pr_warn("anywarp: siw is refused, since anywarp is loaded\n");
	return notifier_from_errno(-EBUSY);
}

static struct notifier_block module_nb = { .notifier_call = on_module };

/*
 * The notifier comes first. Notifiers are called for a siw that is being loaded before it can be
 * found: one that began to load just before this is found when links are added, which then fails.
 */
int awk_siw_refuse(void)
{
	int err = register_module_notifier(&module_nb);

	if (err || !awk_siw_is_loaded())
		return err;
	unregister_module_notifier(&module_nb);
	pr_warn("anywarp: siw is loaded: `rmmod siw` first\n");
	return -EBUSY;
}

void awk_siw_refuse_end(void)
{
	unregister_module_notifier(&module_nb);
}
