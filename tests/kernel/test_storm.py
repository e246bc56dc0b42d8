# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Everything that can go goes, at any time, under load: processes, devices, interfaces, addresses, namespaces, the
module. A seed makes the same choices again: ANYWARP_SEED, and ANYWARP_ROUNDS for fewer or more of them."""

import os
import random as randoms
import threading
import time

import conftest
import ends
import netlink
import storm

PAIRS = 2
ROUNDS = int(os.environ.get("ANYWARP_ROUNDS", "1000"))
ROUNDS_BETWEEN_CHECKS = 25
AT_ONCE_MAX = 3
PAUSE_SECONDS_MAX = 0.1
SEED = int(os.environ.get("ANYWARP_SEED", "0")) or randoms.SystemRandom().randrange(1, 1 << 32)


def kill_some(random, pair, _kernel):
    peers = random.choice(pair.ends).peers
    victims = random.sample(sorted(peers.running), len(peers.running) // 2)
    return lambda: peers.kill(victims)


def kill_all(random, pair, _kernel):
    victims = [(end.peers, list(end.peers.running)) for end in random.choice((pair.ends, pair.ends[:1], pair.ends[1:]))]

    def act():
        for peers, pids in victims:
            peers.kill(pids)
    return act


def delete_device(random, pair, _kernel):
    end = random.choice(pair.ends)
    return lambda: end.netlink.delete_device(end.device)


def delete_interface(random, pair, _kernel):
    end = random.choice(pair.ends)
    return lambda: end.netlink.delete_link(storm.INTERFACE)


def change_address(random, pair, _kernel):
    end = random.choice(pair.ends)
    other = f"192.0.2.{random.randrange(10, 200)}"

    def act():
        end.netlink.change_address(netlink.RTM_DELADDR, storm.INTERFACE, end.address)
        end.netlink.change_address(netlink.RTM_NEWADDR, storm.INTERFACE, other)
    return act


def flap(random, pair, _kernel):
    end = random.choice(pair.ends)

    def act():
        for up in (False, True) * 2:
            end.netlink.set_link(storm.INTERFACE, up)
    return act


def change_mtu(random, pair, _kernel):
    end, mtu = random.choice(pair.ends), random.randrange(576, 9000)
    return lambda: end.netlink.set_mtu(storm.INTERFACE, mtu)


def end_namespace(_random, pair, _kernel):
    return pair.end


def remove_module(_random, _pair, link_type):
    return lambda: netlink.unload_module(link_type)


ACTIONS = {kill_some: 6, kill_all: 3, delete_device: 4, delete_interface: 3, change_address: 2, flap: 2, change_mtu: 1,
           end_namespace: 1, remove_module: 2}


class Storm:
    def __init__(self, kernel, link_type):
        self.kernel, self.link_type = kernel, link_type
        self.random = randoms.Random(SEED)
        self.program = conftest.BUILD / "tests" / "kernel_peer"
        self.pairs = [storm.Pair(number, link_type, self.program) for number in range(PAIRS)]
        self.counts = {}

    def act_at_once(self, chosen):
        """What the actions hold goes with this call: an end keeps its network namespace, also one that was ended."""
        acts = [action(self.random, self.random.choice(self.pairs), self.link_type) for action in chosen]
        threads = [threading.Thread(target=storm.attempt, args=(act,)) for act in acts]
        for each in threads:
            each.start()
        for each in threads:
            each.join(ends.SECONDS_MAX)
            assert not each.is_alive(), f"{chosen} still at work"

    def one_round(self):
        """What happens at once starts at once; what it left broken is mended before the next round."""
        count = self.random.randint(1, AT_ONCE_MAX)
        chosen = self.random.choices(list(ACTIONS), ACTIONS.values(), k=count)
        for pair in self.pairs:
            pair.keep_busy(self.random)
        time.sleep(self.random.random() * PAUSE_SECONDS_MAX)  # for traffic to come as far as chance will have it
        self.act_at_once(chosen)
        if not self.kernel.has(self.link_type):
            netlink.load_module(self.kernel.path_of(self.link_type))
        for pair in self.pairs:
            pair.repair()
        for action in chosen:
            self.counts[action.__name__] = self.counts.get(action.__name__, 0) + 1

    def check(self):
        for pair in self.pairs:
            pair.quieten()
            assert storm.WRONG_BYTES not in pair.statuses()
        assert not (found := self.kernel.complaints()), found
        ends.wait_until(lambda: not storm.objects(), "end of all RDMA objects")
        for pair in self.pairs:
            pair.check_works()

    def close(self):
        for pair in self.pairs:
            pair.end()


def test_a_thousand_rounds(kernel, link_type):
    print(f"ANYWARP_SEED={SEED}")
    blowing = Storm(kernel, link_type)
    done = 0
    try:
        for done in range(1, ROUNDS + 1):
            blowing.one_round()
            if done % ROUNDS_BETWEEN_CHECKS == 0:
                blowing.check()
                print(f"{done} rounds", flush=True)
        blowing.check()
    finally:
        print(f"{done} rounds: {blowing.counts}")
        blowing.close()
