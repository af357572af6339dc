// ComputeDevices: simulates the GPUs as far as they compute. A compute task is an amount of work that is done
// at a rate. Alone on its GPU it runs at full rate; tasks that share a GPU get equal parts of that rate.
//
// While communication kernels run on a GPU, compute tasks there are slower. They take longer by a
// configured factor, because the kernels take SMs and memory bandwidth. If the kernels also hold SMs, the
// compute tasks get only the SMs that are left.
//
// A task with a TaskDemand runs at the clock that the power limit allows. Beside held SMs it takes as long as
// its kernels take on the others. The clock is chosen when a task begins, and when communication takes or
// frees SMs.
//
// The CPUs of a host are one more device. The ranks on its GPUs share it in equal parts; communication does
// not slow it down. Tasks on threads of a rank's own process run at full rate, however many they are.
//
// Whenever the rate of a device changes, the work done so far is subtracted and the next end is scheduled
// anew. Work is counted in 2^-20 ps and rounded so that no task ends early.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "sim/compute/clock_history.h"
#include "sim/compute/compute_times.h"
#include "sim/core/event_loop.h"
#include "sim/core/ids.h"
#include "sim/core/parameters.h"
#include "sim/core/stream.h"

namespace netsim {

// GpuParameters: the section `gpus` of the configuration.
struct GpuParameters {
  // Factor by which compute tasks take longer while communication kernels run on their GPU. Those kernels
  // take SMs and memory bandwidth. The factor depends on kernels and channels and has to be measured; 1 means
  // no effect.
  double slowdown_beside_communication = 1;
  // Streams whose kernels cause `slowdown_beside_communication`: a name or a list of tp, cp, ep, pp, dp and
  // io. The default is all of them. Leave out a stream whose running kernels the measured factor does not
  // include, such as a pipeline stage's waiting receive.
  ConfigNode slowing_streams{};
  // Streams whose kernels hold one SM for each of their channels while they run; none by default. NCCL runs
  // each channel as one CUDA block, and a block that waits for the network keeps its SM (NCCL user guide,
  // environment variables, NCCL_MAX_NCHANNELS). Compute tasks then take SMs / (SMs - held) times as long; at
  // least one SM is left to them.
  ConfigNode channels_hold_multiprocessors{};
  // Standard deviations of compute time, as shares of it: among GPUs and among tasks (gpu_variation.h).
  double variation = 0, jitter = 0;
  // Allows jobs that need more memory than their GPUs have.
  bool overcommit_memory = false;
  ConfigNode stragglers{};
  ConfigNode failures{};  // host failures
};
const Parameters<GpuParameters>& gpu_parameters();

// ComputeListener: is called when a compute task ends, at now() of the GPU's loop.
class ComputeListener {
 public:
  virtual ~ComputeListener() = default;
  virtual void compute_done(GpuId gpu, JobId job, std::uint32_t handle) = 0;
};

class ComputeDevices {
 public:
  // GPU g runs in loops[set_of_gpu[g]] and is in host host_of_gpu[g]; an empty `host_of_gpu` means that no
  // task runs on CPUs. The constructor sets the loops' handler of EventKind::compute_done. It uses the
  // origins from first_origin on: one for each GPU, one for each host, and one for the threads of each GPU's
  // process.
  //
  // `multiprocessors` holds the number of SMs by GPU, 0 or missing where it is unknown. Throws ConfigError
  // for an unknown stream, and where channels are to hold SMs of a GPU whose number of SMs is unknown.
  ComputeDevices(const std::vector<EventLoop*>& loops, const std::vector<std::uint32_t>& set_of_gpu,
                 const GpuParameters& parameters, std::uint32_t first_origin,
                 const std::vector<std::uint32_t>& host_of_gpu = {},
                 const std::vector<std::uint32_t>& multiprocessors = {});
  // Makes the threads. Must be called before the first task, where tasks use them (begin_on_thread()).
  void add_threads();
  ComputeDevices(const ComputeDevices&) = delete;
  ComputeDevices& operator=(const ComputeDevices&) = delete;

  void set_listener(ComputeListener* listener) { listener_ = listener; }

  // All methods below concern one GPU. They are called from its set at now() of its loop, drop() excepted.

  // Begins a task of `work`, its time at full rate in ps. The listener gets `job` and `handle` when the task
  // ends. `demand` is null, or what the task needs; it must live until then.
  void begin(GpuId gpu, JobId job, std::uint32_t handle, Time work, const TaskDemand* demand = nullptr) {
    begin(gpu, {job, handle, gpu, 0, kFullRate, demand}, work);
  }
  // Begins a task on the CPUs of the GPU's host.
  void begin_on_host(GpuId gpu, JobId job, std::uint32_t handle, Time work);
  // Begins a task on a thread of the process that uses the GPU.
  void begin_on_thread(GpuId gpu, JobId job, std::uint32_t handle, Time work);
  // Removes the job's tasks from the GPU, and those that it runs for this GPU on CPUs. The
  // listener is not called for them. Must be called while no set runs.
  void drop(GpuId gpu, JobId job);
  // The kernels of one communication, with `channels` channels, begin or end on the GPU.
  void communication_begins(GpuId gpu, Stream stream, std::uint32_t channels) {
    change_communications(gpu, stream, 1, static_cast<int>(channels));
  }
  void communication_ends(GpuId gpu, Stream stream, std::uint32_t channels) {
    change_communications(gpu, stream, -1, -static_cast<int>(channels));
  }
  // Returns the time at which a running task ends if no rate changes.
  Time expected_end(GpuId gpu, JobId job, std::uint32_t handle) const;

 private:
  using Amount = Int128;  // work in 2^-20 ps at full rate
  static constexpr int kAmountShift = 20, kFactorShift = 16;
  static constexpr Amount kFullRate = Amount{1} << kFactorShift;
  struct Running {
    JobId job;
    std::uint32_t handle;
    GpuId gpu;
    Amount left;    // work left at the time Gpu::updated
    Amount slower;  // factor in 2^-16 by which the task takes longer than at full rate, when it is alone
    const TaskDemand* demand = nullptr;
  };
  struct alignas(64) Gpu {
    Origin origin;
    EventLoop* loop = nullptr;
    Time updated = 0;
    std::uint32_t generation = 0;       // number of the scheduled end; events with another number are ignored
    std::uint32_t communications = 0;   // running communications whose stream slows computing down
    std::uint32_t held = 0;             // SMs held by communication kernels
    std::uint32_t multiprocessors = 0;  // number of SMs; 0: unknown
    Amount slower = kFullRate;          // factor in 2^-16 by which tasks without a demand take longer
    bool shared = true;                 // its tasks get equal parts of its rate
    std::int64_t mhz = 0;               // clock of tasks with a demand
    std::unique_ptr<ClockHistory> history;  // null until a task has a demand
    std::vector<Running> running;           // in the order in which they began
  };

  bool slows(Stream stream) const { return (slowing_ >> static_cast<unsigned>(stream) & 1U) != 0; }
  bool holds(Stream stream) const { return (holding_ >> static_cast<unsigned>(stream) & 1U) != 0; }
  void begin(std::uint32_t device, Running task, Time work);
  void change_communications(GpuId gpu, Stream stream, int communications, int channels);
  void compute_done(const Event& event);
  void settle(Gpu& gpu) const;
  void plan(std::uint32_t number);
  static Amount divisor(const Gpu& gpu, const Running& task);
  Amount slower(const Gpu& gpu) const;
  Amount slower_by_power(const Gpu& gpu, const TaskDemand& demand) const;
  void note_begin(Gpu& gpu, const Running& task) const;
  void note_end(Gpu& gpu, const Running& task) const;
  void set_rates(Gpu& gpu) const;
  static Time time_for(const Gpu& gpu, const Running& task);

  std::vector<Gpu> gpus_;  // the GPUs, the CPUs of each host, then the threads of each GPU's process
  // Returns the devices that compute for a GPU: the GPU, the CPUs of its host, and the threads of its
  // process. The GPU stands for those that no task uses.
  std::array<std::uint32_t, 3> devices_of(GpuId gpu) const {
    const std::uint32_t own = gpu;
    return {own, cpus_of_gpu_.empty() ? own : cpus_of_gpu_[gpu],
            first_thread_ == 0 ? own : first_thread_ + own};
  }

  std::uint32_t gpu_count_, first_thread_origin_;
  std::vector<std::uint32_t> cpus_of_gpu_;  // index in gpus_ of the CPUs of each GPU's host
  std::uint32_t first_thread_ = 0;          // index in gpus_ of the threads of GPU 0; 0: no task uses any
  Amount slowdown_;                         // `slowdown_beside_communication` in 2^-16
  std::uint32_t slowing_;                   // bit mask of the streams whose kernels slow computing down
  std::uint32_t holding_;                   // bit mask of the streams whose channels hold SMs
  ComputeListener* listener_ = nullptr;
};

}  // namespace netsim
