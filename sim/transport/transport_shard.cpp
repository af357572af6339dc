#include "sim/transport/transport_shard.h"

#include <cstring>

namespace netsim {

TransportShard::TransportShard(LogicalProcess& set, FabricShard& fabric, TransportState& state,
                               Connections& connections, const Fabric& whole_fabric)
    : state_(state),
      ideal_times_(state, whole_fabric),
      delays_(ideal_times_),
      receiver_(set, fabric, state, ideal_times_, delays_, counts_),
      sender_(set, fabric, state, receiver_, delays_, counts_),
      aggregations_(set, fabric, state, connections, sender_, ideal_times_, delays_, counts_),
      senders_base_(state.senders.data()),
      second_lines_base_(reinterpret_cast<const char*>(state.senders.data()) + kCacheLine),
      receivers_base_(state.receivers.data()) {
  EventLoop& loop = set.loop();
  fabric.set_source(&sender_);
  loop.set_handler<&Receiver::on_receive>(EventKind::receive, receiver_);
  loop.set_handler<&Receiver::on_reply_timer>(EventKind::reply_timer, receiver_);
  loop.set_handler<&TransportShard::on_deliver>(EventKind::deliver, *this);
  loop.set_handler<&Sender::on_control>(EventKind::control, sender_);
  loop.set_handler<&Sender::on_pace>(EventKind::pace, sender_);
  loop.set_handler<&Sender::on_congestion_timer>(EventKind::congestion_timer, sender_);
  loop.set_handler<&Sender::on_retransmission_timer>(EventKind::retransmission, sender_);
  set.set_remote_event_handler(
      EventKind::notice,
      [](void* self, const RemoteEvent& remote_event, const std::byte* attached) {
        Incoming incoming;
        std::memcpy(&incoming, attached + remote_event.event.argument, sizeof(Incoming));
        static_cast<Receiver*>(self)->expect(remote_event.event.target, incoming);
      },
      &receiver_);
  const void* const* packets = fabric.packets().base();
  loop.set_prefetch(EventKind::receive, &receivers_base_, sizeof(ReceiverState), packets, sizeof(Packet));
  loop.set_prefetch(EventKind::control, &senders_base_, sizeof(SenderState), packets, sizeof(Packet));
  loop.set_prefetch(EventKind::pace, &senders_base_, sizeof(SenderState), nullptr, 0);
  loop.set_prefetch(EventKind::congestion_timer, &senders_base_, sizeof(SenderState), nullptr, 0);
  loop.prefetch_high(EventKind::departure, &senders_base_, sizeof(SenderState));
  for (const EventKind kind : {EventKind::control, EventKind::pace, EventKind::congestion_timer})
    loop.prefetch_also(kind, &second_lines_base_, 2 * sizeof(SenderState), sizeof(SenderState));
}

}  // namespace netsim
