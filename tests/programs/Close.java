// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Sockets that one thread closes while another one reads or writes there: `serve ADDRESS PORT COUNT`, `talk ADDRESS PORT COUNT`. To end
// the threads' calls, OpenJDK puts another file in the number's place (dup2), sends them signals, and closes the number behind the last.
// Every octet tells its connection and its place, so that one of another connection is noticed; and so is an end that nobody made.
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.ArrayList;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;

public class Close {
	static final int CLIENTS = 240, KEPT = 80, PIECE = 16384, TIMEOUT_MS = 600_000;
	// Bits of a connection's number: the server closes it and not the client, reads have a time-out, the client never becomes quiet.
	static final int BY_SERVER = 1, TIMED = 2, LOUD = 28;

	/** A connection, as the one thread sees it that reads and writes there. */
	static class Link {
		final Socket socket;
		final DataInputStream in;
		final DataOutputStream out;
		final byte[] octets = new byte[PIECE];
		int number;
		long sent, got;
		volatile boolean closing;

		Link(Socket socket) throws IOException {
			this.socket = socket;
			in = new DataInputStream(socket.getInputStream());
			out = new DataOutputStream(socket.getOutputStream());
		}

		void begin(int number) throws IOException {
			this.number = number;
			if ((number & TIMED) != 0)
				socket.setSoTimeout(TIMEOUT_MS);
		}

		byte octet(long at) {
			return (byte)(((long)number << 32 | at / 8) >> 8 * (7 - at % 8));
		}

		void send(int n) throws IOException {
			for (int i = 0; i < n; i++)
				octets[i] = octet(sent++);
			out.write(octets, 0, n);
		}

		/** One read; false at the end. */
		boolean receive(int room) throws IOException {
			int n = in.read(octets, 0, room);
			for (int i = 0; i < n; i++)
				if (octets[i] != octet(got++))
					fail("octet " + (got - 1) + " of connection " + number + " is wrong");
			return n >= 0;
		}
	}

	/** Closes those of an end's connections that it is to close, each at any time. */
	static class Closer extends Thread {
		final ArrayList<Link> open = new ArrayList<>();
		final Random random = new Random(1);
		final int share;
		int added;

		Closer(int share) {
			this.share = share;
		}

		synchronized void add(Link link) {
			open.add(link);
			added++;
			notifyAll(); // join waits there, too
		}

		synchronized Link take() throws InterruptedException {
			while (open.size() <= (added == share ? 0 : KEPT))
				wait();
			Link last = open.remove(open.size() - 1);
			return open.isEmpty() ? last : open.set(random.nextInt(open.size()), last);
		}

		public void run() {
			try {
				for (int closed = 0; closed < share; closed++) {
					Link link = take();
					link.closing = true;
					link.socket.close();
				}
			} catch (Exception error) {
				fail("close: " + error);
			}
		}
	}

	static void fail(String what) {
		System.out.println(what);
		System.out.flush();
		Runtime.getRuntime().halt(1);
	}

	/** Reads and writes until the connection's end, which is right only where the end that is to close it has done so. */
	static void work(Link link, boolean serves) throws IOException {
		String end = "the end";
		try {
			if (serves)
				echo(link);
			else
				talk(link);
		} catch (IOException error) {
			end = error.toString();
		}
		if ((link.number & BY_SERVER) != 0 == serves && !link.closing)
			fail("connection " + link.number + " ended after " + link.got + " octets: " + end);
		link.socket.close();
	}

	static void echo(Link link) throws IOException {
		while (link.receive(PIECE))
			link.send((int)(link.got - link.sent));
	}

	static void talk(Link link) throws IOException {
		Random random = new Random(link.number);
		while ((link.number & LOUD) == 0 || random.nextInt(4) > 0) {
			link.send(1 + random.nextInt(PIECE));
			while (link.got < link.sent)
				if (!link.receive((int)(link.sent - link.got)))
					return;
		}
		if (link.receive(1))
			fail("an octet that nobody sent on connection " + link.number);
	}

	/** A client that has closed its connection already is no fault: its number is unknown. */
	static void accepted(Socket socket, Closer closer) throws IOException {
		Link link = new Link(socket);
		try {
			link.begin(link.in.readInt());
		} catch (IOException error) {
			socket.close();
			return;
		}
		if ((link.number & BY_SERVER) != 0)
			closer.add(link);
		work(link, true);
	}

	static void connect(InetSocketAddress server, int number, Closer closer) throws IOException {
		Link link = new Link(new Socket(server.getAddress(), server.getPort()));
		link.begin(number);
		link.out.writeInt(number);
		if ((number & BY_SERVER) == 0)
			closer.add(link);
		work(link, false);
	}

	interface Task {
		void run() throws IOException;
	}

	/** Of a thread whose exception ends the program. */
	static void start(CountDownLatch left, Task task) {
		new Thread(() -> {
			try {
				task.run();
			} catch (Throwable error) {
				fail(error.toString());
			}
			left.countDown();
		}).start();
	}

	public static void main(String[] args) throws Exception {
		InetSocketAddress server = new InetSocketAddress(args[1], Integer.parseInt(args[2]));
		int count = Integer.parseInt(args[3]);
		boolean serves = args[0].equals("serve");
		CountDownLatch left = new CountDownLatch(serves ? count : CLIENTS);
		Closer closer = new Closer(count / 2);
		closer.start();
		if (serves) {
			ServerSocket listener = new ServerSocket(server.getPort(), CLIENTS, server.getAddress());
			for (int i = 0; i < count; i++) {
				Socket socket = listener.accept();
				start(left, () -> accepted(socket, closer));
			}
		} else {
			AtomicInteger next = new AtomicInteger();
			for (int i = 0; i < CLIENTS; i++)
				start(left, () -> {
					for (int number; (number = next.getAndIncrement()) < count;)
						connect(server, number, closer);
				});
		}
		closer.join();
		left.await();
		System.out.println(closer.share + " closed, every connection is right");
	}
}
