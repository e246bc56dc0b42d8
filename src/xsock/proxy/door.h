// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A datagram socket in the user's directory (xsock/base/place.h), at which programs of this user
// that have another proxy process send AW_REQUEST_RELEASE. Called by control.c and main.c.
#ifndef XSOCK_PROXY_DOOR_H
#define XSOCK_PROXY_DOOR_H

/*
 * Opens the socket unless it is open. Called before the first UDP port is bound; a failure is
 * logged.
 */
void aw_door_open(void);
void aw_door_close(void);

#endif
