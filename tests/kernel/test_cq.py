# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A completion queue that loses a completion."""

import ends


def test_an_overflow_takes_the_qps_along(of_ours, link, port):  # pylint: disable=unused-argument
    """Of siw's nothing more is heard, and what they complete is lost."""
    server = link.start_server("rping -s -P", port)
    client = link.run(link.client, f"{link.client.build}/tests/kernel_overflow {link.server.address} {port}")
    assert client.wait_exit(ends.SECONDS_MAX) == 0, link.report()
    assert client.output() == "cq-error\nqp 1 error\nqp 2 error\n"
    assert server.status() is None, link.report()
