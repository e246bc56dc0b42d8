// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//! RDMA in Rust, by rdma_cm and the crate sideway: the client writes a text into the server's memory, and Sends
//! its length. `note PORT` serves one client, `note PORT ADDRESS TEXT` is one.
use sideway::ibverbs::{completion::*, memory_region::MemoryRegion, queue_pair::*, AccessFlags};
use sideway::rdmacm::communication_manager::*;
use std::{error::Error, sync::Arc, time::Duration};

type Done<T> = Result<T, Box<dyn Error>>;
const PAGE: usize = 4096;

struct End {
    qp: ExtendedQueuePair,
    cq: GenericCompletionQueue,
    mr: Arc<MemoryRegion>,
    pages: Box<[[u8; PAGE]; 3]>, // the received message, the data to send, what the peer writes
}

impl End {
    /// A QP in INIT, with a receive for the peer's message.
    fn new(id: &Identifier) -> Done<End> {
        let context = id.get_device_context().ok_or("no device")?;
        let pd = context.alloc_pd()?;
        let cq = GenericCompletionQueue::from(context.create_cq_builder().setup_cqe(8).build_ex()?);
        let pages = Box::new([[0; PAGE]; 3]);
        let may = AccessFlags::LocalWrite | AccessFlags::RemoteWrite;
        let mr = unsafe { pd.reg_mr(pages.as_ptr() as usize, 3 * PAGE, may)? };
        let mut builder = pd.create_qp_builder();
        builder.setup_max_send_wr(4).setup_max_recv_wr(1).setup_send_cq(cq.clone()).setup_recv_cq(cq.clone());
        let mut end = End { qp: builder.build_ex()?, cq, mr, pages };
        end.qp.modify(&id.get_qp_attr(QueuePairState::Init)?)?;
        let mut recv = end.qp.start_post_recv();
        unsafe { recv.construct_wr(1).setup_sge(end.mr.lkey(), end.pages[0].as_ptr() as u64, PAGE as u32) };
        recv.post()?;
        Ok(end)
    }

    fn ready(&mut self, id: &Identifier) -> Done<()> {
        self.qp.modify(&id.get_qp_attr(QueuePairState::ReadyToReceive)?)?;
        Ok(self.qp.modify(&id.get_qp_attr(QueuePairState::ReadyToSend)?)?)
    }

    /// A Send; or a Write, to an address of the peer's by its rkey.
    fn post(&mut self, data: &[u8], target: Option<(u32, u64)>) -> Done<()> {
        self.pages[1][..data.len()].copy_from_slice(data);
        let mut guard = self.qp.start_post_send();
        let wr = guard.construct_wr(2, WorkRequestFlags::Signaled);
        let wr = match target {
            Some((rkey, addr)) => wr.setup_write(rkey, addr),
            None => wr.setup_send(),
        };
        unsafe { wr.setup_sge(self.mr.lkey(), self.pages[1].as_ptr() as u64, data.len() as u32) };
        guard.post()?;
        self.wait()
    }

    /// Waits for one completion, of a send or a receive.
    fn wait(&self) -> Done<()> {
        loop {
            if let Some(wc) = self.cq.start_poll().into_iter().flatten().next() {
                return match WorkCompletionStatus::from(wc.status()) {
                    WorkCompletionStatus::Success => Ok(()),
                    failed => Err(format!("{failed:?}").into()),
                };
            }
        }
    }
}

fn serve(port: &str) -> Done<()> {
    let channel = EventChannel::new()?;
    let listener = channel.create_id(PortSpace::Tcp)?;
    listener.bind_addr(format!("0.0.0.0:{port}").parse()?)?;
    listener.listen(1)?;
    let id = channel.get_cm_event()?.cm_id().ok_or("no request")?;
    let mut end = End::new(&id)?;
    end.ready(&id)?;
    let mut param = ConnectionParameter::default();
    param.setup_qp_number(end.qp.qp_number());
    id.accept(param)?;
    assert_eq!(channel.get_cm_event()?.event_type(), EventType::Established);
    let target = end.pages[2].as_ptr() as u64;
    end.post(&[&target.to_be_bytes()[..], &end.mr.rkey().to_be_bytes()].concat(), None)?;
    end.wait()?;
    let len = u32::from_be_bytes(end.pages[0][..4].try_into()?) as usize;
    Ok(println!("the client wrote: {}", std::str::from_utf8(&end.pages[2][..len])?))
}

fn write(port: &str, address: &str, text: &str) -> Done<()> {
    let (channel, patience) = (EventChannel::new()?, Duration::from_secs(5));
    let id = channel.create_id(PortSpace::Tcp)?;
    id.resolve_addr(None, format!("{address}:{port}").parse()?, patience)?;
    assert_eq!(channel.get_cm_event()?.event_type(), EventType::AddressResolved);
    id.resolve_route(patience)?;
    assert_eq!(channel.get_cm_event()?.event_type(), EventType::RouteResolved);
    let mut end = End::new(&id)?;
    let mut param = ConnectionParameter::default();
    param.setup_qp_number(end.qp.qp_number());
    id.connect(param)?;
    let answer = channel.get_cm_event()?.event_type();
    if answer == EventType::ConnectResponse {
        end.ready(&id)?;
        id.establish()?;
    } else {
        assert_eq!(answer, EventType::Established); // iWARP: the QP is in RTS already
    }
    end.wait()?;
    let (target, rkey) = (end.pages[0][..8].try_into()?, end.pages[0][8..12].try_into()?);
    end.post(text.as_bytes(), Some((u32::from_be_bytes(rkey), u64::from_be_bytes(target))))?;
    end.post(&(text.len() as u32).to_be_bytes(), None)
}

fn main() -> Done<()> {
    let mut words = std::env::args().skip(1);
    let port = words.next().ok_or("usage: note PORT [ADDRESS TEXT]")?;
    match (words.next(), words.next()) {
        (Some(address), Some(text)) => write(&port, &address, &text),
        _ => serve(&port),
    }
}
