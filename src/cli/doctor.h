// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The parts of 'anywarp doctor'. Each prints its findings (cli/finding.h).
#ifndef CLI_DOCTOR_H
#define CLI_DOCTOR_H

// Checks the machine: loopback TCP, file descriptors, socket buffers, namespaces.
void aw_doctor_system(void);

// Checks what a program sees of the device: the persona in force; the files under /dev and /sys,
// here or offered.
void aw_doctor_persona(void);
void aw_doctor_device_files(void);

// Checks whether connections on this host may go through shared memory.
void aw_doctor_host(void);

// Checks the kernel module: loaded, installed or not here, and the devices it made.
void aw_doctor_module(void);

// Loads both libraries as a program would, and looks at the device. Returns the exit status. Runs
// in a process whose LD_LIBRARY_PATH begins with dir.
int aw_doctor_probe(const char *dir);

// Connects two ends over loopback with the loaded librdmacm and sends a message.
void aw_doctor_link(void *rdmacm);

#endif
