// ComputeDevices: the GPUs as far as they compute. A compute task is work with a current rate: alone on its
// GPU it runs at full rate; tasks that share a GPU (jobs may, where their placements say so) each have an
// equal part of it; and while kernels of a communication run beside it, of any stream or of those that the
// configuration names, it is slower by a factor, because they take SMs and memory bandwidth from it, or has
// the SMs only that they leave.
//
// The CPUs of a host are one more device, which ranks on its GPUs share alike; communication does not disturb
// them.
//
// Whenever the rate of a GPU changes, what its tasks have done is settled and the next end planned anew. Work
// is counted in 2^-20 ps, rounded so that no task ends early.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/compute/stream.h"
#include "sim/core/event_loop.h"
#include "sim/core/parameters.h"

namespace netsim {

// The section `gpus` of the configuration.
struct GpuParameters {
  // While communication kernels run on a GPU, computing there takes so many times as long: they take SMs and
  // memory bandwidth. How much depends on kernels and channels and has to be measured; 1: the two do not
  // disturb each other.
  double slowdown_beside_communication = 1;
  // Streams whose kernels do so, a name or a list of tp, cp, ep, pp, dp and io; all unless given. So kernels
  // that hold SMs of their own (those of dispatch and combine) can be told from others that the factor is not
  // about (a receive from another stage of a pipeline that waits is a kernel that runs, too).
  ConfigNode slowing_streams{};
  // Streams whose kernels hold one SM for each of their channels, none unless given. NCCL runs each channel
  // as one CUDA block, so that fewer channels leave a GPU more to compute with (its user guide, environment
  // variables, NCCL_MAX_NCHANNELS), and a block that waits for the network keeps its SM. While they run, what
  // computes has the others: it takes SMs / (SMs - held) times as long. At least one is left.
  ConfigNode channels_hold_multiprocessors{};
  // Standard deviations of the time that computing takes, as shares of it, among GPUs and among tasks: see
  // gpu_variation.h.
  double variation = 0, jitter = 0;
  // Jobs may need more memory than their GPUs have.
  bool overcommit_memory = false;
  ConfigNode stragglers{};
  ConfigNode failures{};  // of hosts
};
const Parameters<GpuParameters>& gpu_parameters();

// Who is told that a task ended, at now() of the GPU's loop.
class ComputeListener {
 public:
  virtual ~ComputeListener() = default;
  virtual void compute_done(std::uint32_t gpu, std::uint32_t job, std::uint32_t handle) = 0;
};

class ComputeDevices {
 public:
  // GPU g runs in loops[set_of_gpu[g]], on host host_of_gpu[g] (empty: nobody computes on hosts). Handles
  // EventKind::compute_done of the loops; origins first_origin + gpu are its own, and behind those one a
  // host. `multiprocessors`: of each GPU, 0 or left out where nobody knows. ConfigError for a stream that is
  // none, and where channels are to hold multiprocessors of a GPU that has an unknown number.
  ComputeDevices(const std::vector<EventLoop*>& loops, const std::vector<std::uint32_t>& set_of_gpu,
                 const GpuParameters& parameters, std::uint32_t first_origin,
                 const std::vector<std::uint32_t>& host_of_gpu = {},
                 const std::vector<std::uint32_t>& multiprocessors = {});
  ComputeDevices(const ComputeDevices&) = delete;
  ComputeDevices& operator=(const ComputeDevices&) = delete;

  void set_listener(ComputeListener* listener) { listener_ = listener; }

  // All below concern one GPU and are called at now() of its loop, from its set.

  // A task of `work` at full rate begins. The listener is given back job and handle when it ends.
  void begin(std::uint32_t gpu, std::uint32_t job, std::uint32_t handle, Time work) {
    begin(gpu, {job, handle, gpu, 0}, work);
  }
  // The same on the CPUs of its host.
  void begin_on_host(std::uint32_t gpu, std::uint32_t job, std::uint32_t handle, Time work);
  // The job's tasks on the GPU, and on its host's CPUs for it, are gone, and the listener hears of none of
  // them. While no set runs.
  void drop(std::uint32_t gpu, std::uint32_t job);
  // Kernels of one communication, with so many channels, begin or end to run beside the tasks.
  void communication_begins(std::uint32_t gpu, Stream stream, std::uint32_t channels) {
    change_communications(gpu, stream, 1, static_cast<int>(channels));
  }
  void communication_ends(std::uint32_t gpu, Stream stream, std::uint32_t channels) {
    change_communications(gpu, stream, -1, -static_cast<int>(channels));
  }
  // When a task that is running will end if no rate changes.
  Time expected_end(std::uint32_t gpu, std::uint32_t job, std::uint32_t handle) const;

 private:
  using Amount = Int128;  // of work, in 2^-20 ps at full rate
  static constexpr int kAmountShift = 20, kFactorShift = 16;
  static constexpr Amount kFullRate = Amount{1} << kFactorShift;
  struct Running {
    std::uint32_t job, handle, gpu;
    Amount left;  // as of Gpu::updated
  };
  struct alignas(64) Gpu {
    Origin origin;
    EventLoop* loop = nullptr;
    Time updated = 0;
    std::uint32_t generation = 0;       // of the planned end: an event of another one means nothing
    std::uint32_t communications = 0;   // that slow down what computes
    std::uint32_t held = 0;             // multiprocessors
    std::uint32_t multiprocessors = 0;  // 0: not known
    Amount slower = kFullRate;          // by these computing takes so many times as long
    std::vector<Running> running;       // in the order in which they began
  };

  bool slows(Stream stream) const { return (slowing_ >> static_cast<unsigned>(stream) & 1U) != 0; }
  bool holds(Stream stream) const { return (holding_ >> static_cast<unsigned>(stream) & 1U) != 0; }
  void begin(std::uint32_t device, Running task, Time work);
  void change_communications(std::uint32_t gpu, Stream stream, int communications, int channels);
  void compute_done(const Event& event);
  void settle(Gpu& gpu) const;
  void plan(std::uint32_t number);
  Amount divisor(const Gpu& gpu) const;
  Amount slower(const Gpu& gpu) const;
  Time time_for(const Gpu& gpu, Amount work) const;

  std::vector<Gpu> gpus_;                   // and behind them the CPUs of each host
  std::vector<std::uint32_t> cpus_of_gpu_;  // by GPU, in gpus_
  Amount slowdown_;                         // in 2^-16
  std::uint32_t slowing_;                   // a bit for each Stream whose kernels slow computing down
  std::uint32_t holding_;                   // the same of those whose channels hold multiprocessors
  ComputeListener* listener_ = nullptr;
};

}  // namespace netsim
