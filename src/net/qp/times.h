// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The one table of the numbers of net/qp that hang on a clock, or that stand for a time because a thread counts its
// own turns. serve.c and credit.c decide by them; no other file of this room has a time of its own, but for those that
// the core has for both drivers (core/ending.h, rnr_wait.h, liveness.h) and for captures (capture.c). Figures are of two
// virtual CPUs, where a recv(2) that finds nothing takes 0.2 us, a sched_yield(2) 0.3, an epoll_ctl(2) 0.5, a clock 0.02.
#ifndef NET_TIMES_H
#define NET_TIMES_H

/*
 * Posts and acknowledgements that wait for the program's next call (net/qp/credit.h). Measured with all four: 64 bytes
 * in a window of 128 posts, Writes 0.17 to 4.0 million a second, Sends 0.19 to 2.5, where TCP has 0.23 with one send(2)
 * a message.
 *
 * AW_BURST_GAP_NS: posts further apart are no burst. At the rates above a post takes 0.25 to 0.4 us, so a program that
 * pauses for several times that does something else.
 * AW_WAIT_NS: no send waits longer. The most posts that may wait take 16 to 26 us at the rates above.
 * AW_LATE_NS: from then on the progress thread sends posts, since the poll that ends a burst would have come.
 * AW_LATE_LOOK_NS: between two looks of the progress thread while posts wait, which bounds how long a post waits. Each look
 * takes 25 us of CPU, most of it the kernel's timer, so a shorter interval would bring no earlier look.
 */
#define AW_BURST_GAP_NS 2000
#define AW_WAIT_NS 20000
#define AW_LATE_NS (AW_WAIT_NS + AW_BURST_GAP_NS)
#define AW_LATE_LOOK_NS 50000u

/*
 * The threads that serve a QP (net/qp/serve.h). A tick is one look of the progress thread at the QPs that other threads
 * serve. Measured: 4 bytes by events there and back, 40 us by the progress thread, 11 us by the thread that sleeps. 512
 * clients, 64 bytes, beside TCP with epoll, 2.14 where one silent tick took a QP back, 1.16 with four.
 *
 * AW_TICK_NS: a message waits no longer where the thread that serves its QP has stopped. A walk over 512 QPs in each
 * tick took 6 % of a CPU, so a tick looks at counters, and walks only where one stands still.
 * AW_TURNS_MIN: a thread that makes so many turns between two arrivals makes empty polls without end: 16 empty polls take
 * 3 us or more, and a program that waits by events makes two (AW_POLLS_AWAKE).
 * AW_SILENT_TICKS: a thread that makes no turn in a tick may have lost its CPU, for a time slice of 1 to 4 ms. Serving
 * hundreds of QPs once costs less than taking them back and giving them away again. In the same interval the progress
 * thread serves the QPs of pollers that never find their CQ empty.
 * AW_MOVES_A_TICK, AW_MORE_TICKS_MAX: the more QPs a channel's threads serve, the longer they may be silent, until the ticks have
 * cost what the moves would: taking 512 QPs back and giving them away again takes 2,000 epoll_ctl, 1 ms, and a look at them 0.05. Two
 * processes that share a CPU run for 4 ms each to serve 512 messages, so that every turn of the one took all QPs of the other back.
 * Meanwhile messages and Reads wait for the next tick, as in each silent tick.
 * AW_BRISK_NS: arrivals so near each other pay for moving a socket to the set of a channel and back: four epoll_ctl,
 * 2 us, against one wake-up fewer for each arrival.
 * AW_EVENTFUL_MIN, AW_EVENTFUL_MAX: arrivals in a row, each of which raised an event, before a QP goes to watchers. A server gets
 * so many of each client in milliseconds. Each later arrival without an event wakes the program for nothing, so the number doubles
 * with each of these, up to some seconds of a busy connection.
 * AW_ARMING_NS: a program that takes an event arms the CQ in the same turn of its loop, within some microseconds.
 * AW_AWAKE_NS, AW_IDLE_TICKS: the same time, by the clock and in ticks: a thread that woke so lately comes back to
 * sleep, and one that sleeps keeps its QPs for so long without an arrival, and many of them for AW_MORE_TICKS_MAX longer. A process
 * that sleeps should have no tick.
 * AW_CPUS_NS: a new stream counts the process's CPUs if they were counted so long ago: 0.3 us, and seldom another number.
 */
#define AW_TICK_NS 1000000u
#define AW_CPUS_NS 10000000u
#define AW_TURNS_MIN 16
#define AW_SILENT_TICKS 4
#define AW_MOVES_A_TICK 16u
#define AW_MORE_TICKS_MAX 32u
#define AW_BRISK_NS 10000000u
#define AW_EVENTFUL_MIN 32u
#define AW_EVENTFUL_MAX 65536u
#define AW_ARMING_NS 100000u
#define AW_AWAKE_NS AW_BRISK_NS
#define AW_IDLE_TICKS (AW_BRISK_NS / AW_TICK_NS)

/*
 * Empty polls (net/qp/cq_poll.c).
 *
 * AW_SPIN_POLLS: a thread with so many empty polls in a row spins: 12 us or more.
 * AW_SPIN_VAIN_MAX: a QP that threads spinning on other CQs serve goes back to the progress thread once nothing moved for
 * so many of their turns: 0.4 ms or more, so that a QP at rest does not cost them a recv(2) in each turn.
 * AW_YIELD_POLLS: a thread gives its CPU away after so many empty polls. Two threads that wait for each other on one CPU, where
 * the scheduler puts them now and then, would each use up a time slice of 1 to 4 ms: half a round trip of 4 bytes took 2.8 ms
 * there and takes 22 us. On a CPU of its own a thread loses 0.3 us in each 64 polls, which take 13 us.
 * AW_POLLS_AWAKE: empty polls that ask no socket, of a thread that woke from a sleep on its channel: one before it
 * arms and one behind it. The sleep asks them all.
 */
#define AW_SPIN_POLLS 64
#define AW_SPIN_VAIN_MAX 2048
#define AW_YIELD_POLLS 64
#define AW_POLLS_AWAKE 2

/*
 * Deadlines of a QP's watch.
 *
 * AW_MEMORY_RETRY_MS: memory for a buffer was out, and no event tells when there is some.
 * AW_TURN_RETRY_MS: another turn is due of which no event tells: the shortest deadline that a watch has.
 */
#define AW_MEMORY_RETRY_MS 10
#define AW_TURN_RETRY_MS 1

/*
 * Round trips of a path on which caches bound the send buffer (net/qp/send_buffer.h), to 416 KiB. Measured over a veth pair, whose least
 * round trip takes 1 to 14 us, and 20 to 200 under load: both ends' processor time of a GB falls from 0.74 to 0.33 s.
 *
 * AW_SHORT_RTT_US: the bound would let 20 GB/s pass, more than one stream can.
 * AW_QUEUED_RTT_US: it still lets 2.7 GB/s pass. Beyond that others' packets queue on the path, and TCP shares it with them only if it
 * may keep as many under way as they do.
 */
#define AW_SHORT_RTT_US 20u
#define AW_QUEUED_RTT_US 150u

#endif
