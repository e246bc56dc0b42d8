// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Tasklets that nothing here schedules: stream_plain.c leaves all sending to the worker.
#ifndef KSHIM_INTERRUPT_H
#define KSHIM_INTERRUPT_H

struct tasklet_struct {
	void (*callback)(struct tasklet_struct *tasklet);
};

#define tasklet_setup(tasklet, function) ((void)((tasklet)->callback = (function)))
#define tasklet_kill(tasklet) ((void)(tasklet))

#endif
