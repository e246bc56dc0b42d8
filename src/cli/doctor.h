// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The parts of 'anywarp doctor'. Each prints its findings (cli/finding.h).
#ifndef CLI_DOCTOR_H
#define CLI_DOCTOR_H

#include <stdbool.h>

// Checks the environment: what is preloaded, the names of variables, and their values.
void aw_doctor_environment(void);

// Checks what sockets programs need.
void aw_doctor_sockets(void);

// Checks the machine: loopback TCP, file descriptors, socket buffers, namespaces.
void aw_doctor_system(void);

// Checks what a program sees of the device: the persona in force; the files under /dev and /sys,
// here or offered.
void aw_doctor_persona(void);
void aw_doctor_device_files(void);

// Checks whether connections on this host may go through shared memory.
void aw_doctor_host(void);

// Checks OpenSSL, the files and the certificate's end, where TLS is required.
void aw_doctor_tls(void);

// Checks the kernel module: loaded, installed or not here, and the devices it made.
void aw_doctor_module(void);

// The parts of the probe, each of which is a process of its own whose LD_LIBRARY_PATH begins with dir.
#define DOCTOR_LIBRARIES "libraries"
#define DOCTOR_CONNECTION "connection"

// Tries the part of the probe with the libraries of dir. Returns the exit status.
int aw_doctor_probe(const char *dir, const char *part);

// Connects this process to a child over loopback, and sends it a message. False: a failure was printed.
bool aw_doctor_link(void);

// Returns what is to be done against the error, an errno; or_else where that does not tell.
const char *aw_doctor_remedy(int error, const char *or_else);

#endif
