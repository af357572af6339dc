// Messages and actions on them at given times, from events of their source, on a packet network in any number
// of sets. The fate of each message is recorded.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/engine.h"
#include "sim/topology/partition.h"
#include "sim/topology/topology.h"
#include "sim/transport/packet_network.h"

namespace netsim::test {

class ScriptedMessages : public MessageListener {
 public:
  // The fate of a message. The sets of its two ends write it.
  struct Fate {
    Time delivered = -1, sent = -1;
    Bytes bytes = 0, bytes_sent = 0;  // carried, as each end is told
    bool truncated = false;
    int deliveries = 0, sents = 0;
    bool operator==(const Fate&) const = default;
  };

  explicit ScriptedMessages(const std::string& yaml, std::uint32_t sets = 1, std::uint32_t threads = 1)
      : root(parse_config(yaml, "test.yaml")),
        cluster(build_cluster(root)),
        partition(sets == 1 ? Partition() : netsim::partition(cluster.graph, threads, sets)),
        engine({partition.sets, partition.lookahead, threads}) {
    network = PacketNetwork::create(engine, cluster, partition, section("network"), section("transport"), 1,
                                    [this](const FlowRecord& flow) { flows.push_back(flow); });
    network->set_listener(this);
    for (std::uint32_t gpu = 0; gpu < cluster.gpus.size(); ++gpu) {
      set_of_gpu_.push_back(partition.set_of(cluster.gpus[gpu].node));
      origins_.emplace_back((1U << 24) - 1 - gpu);
    }
    for (std::uint32_t set = 0; set < partition.sets; ++set) {
      engine.loop(set).set_handler(
          EventKind::job,
          [](void* self, const Event& event) {
            auto& script = *static_cast<ScriptedMessages*>(self);
            script.act(script.events_[event.argument]);
          },
          this);
    }
  }

  // The number of the message.
  std::size_t send(Time at, Message message) {
    message.tag = messages.size();
    messages.push_back(message);
    handles.emplace_back();
    fates.emplace_back();
    add(at, Kind::send, message.tag);
    return message.tag;
  }
  std::size_t send(Time at, std::uint32_t from, std::uint32_t to, Bytes bytes, std::uint8_t priority = 0) {
    Message message;
    message.source = from;
    message.destination = to;
    message.bytes = bytes;
    message.traits.priority = priority;
    return send(at, message);
  }
  // Each returns the number of its answer in `answers`.
  std::size_t hold(Time at, std::size_t message) { return add(at, Kind::hold, message); }
  std::size_t release(Time at, std::size_t message) { return add(at, Kind::release, message); }
  std::size_t prefer(Time at, std::size_t message, std::uint8_t priority) {
    return add(at, Kind::set_priority, message, priority);
  }
  std::size_t cancel(Time at, std::size_t message) { return add(at, Kind::cancel, message); }
  std::size_t set_rate(Time at, std::size_t message, BitRate rate) {
    return add(at, Kind::set_rate, message, rate);
  }
  std::size_t set_path(Time at, std::size_t message, std::uint32_t hint) {
    return add(at, Kind::set_path, message, hint);
  }
  std::size_t left(Time at, std::size_t message) { return add(at, Kind::left, message); }

  void run() { engine.run(); }

  void message_delivered(const Delivery& delivery) override {
    Fate& fate = fates[delivery.message.tag];
    fate.delivered = now(delivery.message.destination);
    fate.bytes = delivery.bytes;
    fate.truncated = delivery.is_truncated();
    ++fate.deliveries;
  }
  void message_sent(const SendCompletion& completion) override {
    const Message& message = completion.request.message;
    Fate& fate = fates[message.tag];
    fate.sent = now(message.source);
    fate.bytes_sent = completion.bytes;
    ++fate.sents;
  }

  ConfigNode root;
  Cluster cluster;
  Partition partition;
  Engine engine;
  std::unique_ptr<PacketNetwork> network;
  std::vector<Message> messages;
  std::vector<MessageHandle> handles;
  std::vector<Fate> fates;
  std::vector<Bytes> answers;  // of a call: its bytes, or 1 for true; -1: it has not come yet
  std::vector<FlowRecord> flows;

 private:
  enum class Kind { send, hold, release, set_priority, cancel, set_rate, set_path, left };
  struct Action {
    Kind kind;
    std::size_t message;
    std::int64_t value;  // priority, rate or path hint
  };

  // The actions of one source at one time, in the given order. No packet leaves in between.
  struct OneEvent {
    Time at;
    std::uint32_t source;
    std::size_t first, actions;
  };

  const ConfigNode& section(const std::string& name) const {
    static const ConfigNode none;
    const ConfigNode* node = root.find(name);
    return node != nullptr ? *node : none;
  }
  Time now(std::uint32_t gpu) { return engine.loop(set_of_gpu_[gpu]).now(); }
  std::size_t add(Time at, Kind kind, std::size_t message, std::int64_t value = 0) {
    const std::uint32_t source = messages[message].source;
    actions_.push_back({kind, message, value});
    answers.push_back(-1);
    if (!events_.empty() && events_.back().at == at && events_.back().source == source) {
      ++events_.back().actions;
      return answers.size() - 1;
    }
    engine.loop(set_of_gpu_[source]).schedule(at, origins_[source], EventKind::job, source, events_.size());
    events_.push_back({at, source, answers.size() - 1, 1});
    return answers.size() - 1;
  }
  void act(const OneEvent& event) {
    for (std::size_t i = 0; i < event.actions; ++i) act(event.first + i);
  }
  void act(std::size_t index) {
    const Action& action = actions_[index];
    MessageHandle& handle = handles[action.message];
    switch (action.kind) {
      case Kind::send:
        handle = network->send({messages[action.message]});
        break;
      case Kind::hold:
        answers[index] = network->hold(handle) ? 1 : 0;
        break;
      case Kind::release:
        answers[index] = network->release(handle) ? 1 : 0;
        break;
      case Kind::set_priority:
        answers[index] = network->set_priority(handle, static_cast<std::uint8_t>(action.value)) ? 1 : 0;
        break;
      case Kind::cancel:
        answers[index] = network->cancel(handle);
        break;
      case Kind::set_rate:
        answers[index] = network->set_rate(handle, action.value) ? 1 : 0;
        break;
      case Kind::set_path:
        answers[index] = network->set_path(handle, static_cast<std::uint32_t>(action.value)) ? 1 : 0;
        break;
      case Kind::left:
        answers[index] = network->left(handle);
        break;
    }
  }

  std::vector<std::uint32_t> set_of_gpu_;
  std::vector<Origin> origins_;
  std::vector<Action> actions_;
  std::vector<OneEvent> events_;
};

}  // namespace netsim::test
