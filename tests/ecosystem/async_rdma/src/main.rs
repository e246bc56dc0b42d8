// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//! Blocks of 1 MiB by the crate async-rdma: `blocks server|client ADDRESS:PORT`. The client writes into memory
//! that it asks the server for and reads it back, then reads memory that the server tells it of. Both compare.
use async_rdma::{LocalMrReadAccess, LocalMrWriteAccess, Rdma, RdmaBuilder};
use std::{alloc::Layout, io};

const BLOCKS: u64 = 16;
const FROM_CLIENT: u64 = 1; // seeds
const FROM_SERVER: u64 = 1 << 32;
const LAYOUT: Layout = Layout::new::<[u8; 1 << 20]>();

fn octets(seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 56) as u8
    };
    (0..LAYOUT.size()).map(|_| next()).collect()
}

async fn server(rdma: &Rdma) -> io::Result<()> {
    for block in 0..BLOCKS {
        let written = rdma.receive_local_mr().await?;
        assert!(*written.as_slice() == octets(FROM_CLIENT + block), "what was written differs");
    }
    for block in 0..BLOCKS {
        let mut own = rdma.alloc_local_mr(LAYOUT)?;
        own.as_mut_slice().copy_from_slice(&octets(FROM_SERVER + block));
        rdma.send_local_mr(own).await?;
    }
    rdma.receive().await.map(|_| ())
}

async fn client(rdma: &Rdma) -> io::Result<()> {
    let mut own = rdma.alloc_local_mr(LAYOUT)?;
    let mut back = rdma.alloc_local_mr(LAYOUT)?;
    for block in 0..BLOCKS {
        let mut far = rdma.request_remote_mr(LAYOUT).await?;
        own.as_mut_slice().copy_from_slice(&octets(FROM_CLIENT + block));
        rdma.write(&own, &mut far).await?;
        rdma.read(&mut back, &far).await?;
        assert!(*back.as_slice() == *own.as_slice(), "what was read back differs");
        rdma.send_remote_mr(far).await?;
    }
    for block in 0..BLOCKS {
        let far = rdma.receive_remote_mr().await?;
        rdma.read(&mut back, &far).await?;
        assert!(*back.as_slice() == octets(FROM_SERVER + block), "what was read differs");
    }
    rdma.send(&rdma.alloc_local_mr(Layout::new::<u8>())?).await
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let words: Vec<String> = std::env::args().collect();
    if words[1] == "server" {
        server(&RdmaBuilder::default().listen(&words[2]).await?).await?;
    } else {
        client(&RdmaBuilder::default().connect(&words[2]).await?).await?;
    }
    println!("the octets are equal");
    Ok(())
}
