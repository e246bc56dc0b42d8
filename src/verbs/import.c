// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A second context of a device that this process has open. Objects of another process cannot be
// imported: its QPs and memory exist only there, and there is no kernel between the two processes
// that could share them.
#include "base/log.h"
#include "verbs/context.h"

#include <errno.h>

struct ibv_context *ibv_import_device(int cmd_fd)
{
	struct vb_context *context;
	int err = vb_context_import(cmd_fd, &context);

	if (err == EOPNOTSUPP)
		aw_log(AW_LOG_ERROR,
		       "ibv_import_device: fd %d is of no context of this process: a device in user "
		       "space is not shared between processes; open it in each",
		       cmd_fd);
	if (err) {
		errno = err;
		return NULL;
	}
	return &context->verbs.context;
}
