// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Java NIO: a server that gives back what comes, and a client with many connections, each in one thread with one Selector:
// `serve ADDRESS PORT`, `talk ADDRESS PORT`.
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.Random;

public class Nio {
	static final int CLIENTS = 48, OCTETS_MAX = 2_000_000, PIECE = 65536;

	interface Link {
		/** What the Selector is to wait for next; 0: the connection is over. */
		int turn(SocketChannel channel) throws IOException;
	}

	/** Of the server: a buffer's worth under way. */
	static class Echo implements Link {
		final ByteBuffer waiting = ByteBuffer.allocateDirect(PIECE);
		boolean ended;

		public int turn(SocketChannel channel) throws IOException {
			ended = ended || channel.read(waiting) < 0;
			waiting.flip();
			channel.write(waiting);
			waiting.compact();
			return (waiting.position() > 0 ? SelectionKey.OP_WRITE : 0) |
			       (!ended && waiting.hasRemaining() ? SelectionKey.OP_READ : 0);
		}
	}

	/** Of the client: two buffers a write, and what comes back is compared while it is sent. */
	static class Talk implements Link {
		final byte[] octets;
		final ByteBuffer[] out;
		final ByteBuffer in = ByteBuffer.allocate(PIECE);
		int got;

		Talk(int number) {
			Random random = new Random(number);
			octets = new byte[1 + (int)Math.pow(OCTETS_MAX, random.nextDouble())];
			random.nextBytes(octets);
			int middle = random.nextInt(octets.length);
			out = new ByteBuffer[] { ByteBuffer.wrap(octets, 0, middle),
						 ByteBuffer.wrap(octets, middle, octets.length - middle) };
		}

		public int turn(SocketChannel channel) throws IOException {
			if (out[1].hasRemaining()) {
				channel.write(out);
				if (!out[1].hasRemaining())
					channel.shutdownOutput();
			}
			in.clear();
			int n = channel.read(in);
			for (int i = 0; i < n; i++)
				if (in.get(i) != octets[got++])
					throw new IOException("octet " + got + " of " + octets.length + " is wrong");
			if (n < 0 && got < octets.length)
				throw new IOException("the end after " + got + " of " + octets.length);
			return n < 0 ? 0 : SelectionKey.OP_READ | (out[1].hasRemaining() ? SelectionKey.OP_WRITE : 0);
		}
	}

	static void step(SelectionKey key) throws IOException {
		if (key.isAcceptable()) {
			SocketChannel channel = ((ServerSocketChannel)key.channel()).accept();
			channel.configureBlocking(false);
			channel.register(key.selector(), SelectionKey.OP_READ, new Echo());
			return;
		}
		SocketChannel channel = (SocketChannel)key.channel();
		if (key.isConnectable())
			channel.finishConnect();
		int wanted = ((Link)key.attachment()).turn(channel);
		if (wanted == 0)
			channel.close();
		else
			key.interestOps(wanted);
	}

	public static void main(String[] args) throws IOException {
		InetSocketAddress address = new InetSocketAddress(args[1], Integer.parseInt(args[2]));
		Selector selector = Selector.open();
		if (args[0].equals("serve")) {
			ServerSocketChannel listener = ServerSocketChannel.open().bind(address, CLIENTS);
			listener.configureBlocking(false);
			listener.register(selector, SelectionKey.OP_ACCEPT);
		} else {
			for (int number = 0; number < CLIENTS; number++) {
				SocketChannel channel = SocketChannel.open();
				channel.configureBlocking(false);
				boolean connected = channel.connect(address);
				channel.register(selector, connected ? SelectionKey.OP_WRITE : SelectionKey.OP_CONNECT,
						 new Talk(number));
			}
		}
		while (!selector.keys().isEmpty()) {
			selector.select();
			for (SelectionKey key : selector.selectedKeys())
				step(key);
			selector.selectedKeys().clear();
			selector.selectNow(); // cancelled keys go
		}
		System.out.println("every connection is right");
	}
}
