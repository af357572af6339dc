#include "sim/compute/compute_devices.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "sim/core/errors.h"
#include "sim/core/time_limits.h"

namespace netsim {
namespace {

constexpr const char* kAllStreams = "all";
constexpr const char* kNoStream = "none";
// The streams on which a GPU runs communication kernels.
constexpr std::array kKernelStreams{Stream::tp, Stream::cp, Stream::ep, Stream::pp, Stream::dp, Stream::io};

// Returns a bit mask of the named streams. The name kNoStream is accepted only where it is the default.
std::uint32_t named_streams(const ConfigNode& names, const std::string& default_name) {
  const auto bit = [](Stream stream) { return 1U << static_cast<unsigned>(stream); };
  if (names.is_sequence() && names.items().empty())
    names.fail("no stream is named; leave the key out for " + default_name);
  std::uint32_t streams = 0;
  for (const ConfigNode& node : read_names(names, default_name)) {
    const std::string name = read_text(node);
    if (name == kNoStream && default_name == kNoStream) continue;
    std::uint32_t named = 0;
    std::string allowed = kAllStreams;
    if (default_name == kNoStream) allowed = std::string(kNoStream) + ", " + allowed;
    for (const Stream stream : kKernelStreams) {
      allowed += std::string(", ") + to_string(stream);
      if (name == kAllStreams || name == to_string(stream)) named |= bit(stream);
    }
    if (named == 0) node.fail("'" + name + "' is not one of: " + allowed);
    streams |= named;
  }
  return streams;
}

}  // namespace

const Parameters<GpuParameters>& gpu_parameters() {
  using P = GpuParameters;
  static const auto parameters =
      Parameters<P>()
          .real("slowdown_beside_communication", &P::slowdown_beside_communication, {1, 100},
                "factor by which computing slows down while communication kernels run on the same GPU")
          .names("slowing_streams", &P::slowing_streams, kAllStreams,
                 "streams whose communication slows computing down: all, or one or several of tp, cp, ep, "
                 "pp, dp, io")
          .names("channels_hold_multiprocessors", &P::channels_hold_multiprocessors, kNoStream,
                 "streams whose kernels hold one multiprocessor for each of their channels, which computing "
                 "then cannot use: none, all, or one or several of tp, cp, ep, pp, dp, io")
          .real(
              "variation", &P::variation, {0, 0.15},
              "standard deviation of compute times among GPUs, as a share of the mean; 0: all GPUs are alike")
          .real("jitter", &P::jitter, {0, 0.15},
                "standard deviation of the time of a compute task, as a share of its mean; 0: none")
          .flag("overcommit_memory", &P::overcommit_memory,
                "jobs run even if they need more memory than their GPUs have")
          .list(
              "stragglers", &P::stragglers,
              "GPUs that are slower: {gpu: host0/gpu3, slowdown: 1.3} or {host: host2, slowdown: 1.1}, with "
              "first_iteration and last_iteration if not always")
          .list("failures", &P::failures,
                "hosts that stop computing at a time: {host: host3, at: 10 s}; see the key recovery of jobs");
  return parameters;
}

ComputeDevices::ComputeDevices(const std::vector<EventLoop*>& loops,
                               const std::vector<std::uint32_t>& set_of_gpu, const GpuParameters& parameters,
                               std::uint32_t first_origin, const std::vector<std::uint32_t>& host_of_gpu,
                               const std::vector<std::uint32_t>& multiprocessors)
    : gpus_(set_of_gpu.size() +
            (host_of_gpu.empty() ? 0 : 1 + *std::max_element(host_of_gpu.begin(), host_of_gpu.end()))),
      gpu_count_(static_cast<std::uint32_t>(set_of_gpu.size())),
      first_thread_origin_(first_origin + static_cast<std::uint32_t>(gpus_.size())),
      slowdown_(static_cast<Amount>(parameters.slowdown_beside_communication * (1 << kFactorShift) + 0.5)),
      slowing_(named_streams(parameters.slowing_streams, kAllStreams)),
      holding_(named_streams(parameters.channels_hold_multiprocessors, kNoStream)) {
  if (slowdown_ == kFullRate) slowing_ = 0;
  for (std::uint32_t device = 0; device < gpus_.size(); ++device)
    gpus_[device].origin = Origin(first_origin + device);
  const std::uint32_t gpus = gpu_count_;
  for (GpuId gpu = 0; gpu < gpus; ++gpu) {
    gpus_[gpu].loop = loops[set_of_gpu[gpu]];
    if (gpu < multiprocessors.size()) gpus_[gpu].multiprocessors = multiprocessors[gpu];
    if (holding_ != 0 && gpus_[gpu].multiprocessors == 0) {
      parameters.channels_hold_multiprocessors.fail(
          "the number of multiprocessors of GPU " + std::to_string(gpu) +
          " is not known: choose a model in `compute` that states it");
    }
    if (host_of_gpu.empty()) continue;
    cpus_of_gpu_.push_back(gpus + host_of_gpu[gpu]);
    gpus_[cpus_of_gpu_.back()].loop = gpus_[gpu].loop;
  }
  for (EventLoop* loop : loops)
    loop->set_handler<&ComputeDevices::compute_done>(EventKind::compute_done, *this);
}

void ComputeDevices::begin_on_host(GpuId gpu, JobId job, std::uint32_t handle, Time work) {
  NETSIM_CHECK(gpu < cpus_of_gpu_.size(), "a host computes that is not one of the devices");
  begin(cpus_of_gpu_[gpu], {job, handle, gpu, 0, kFullRate, nullptr}, work);
}

void ComputeDevices::add_threads() {
  if (first_thread_ != 0) return;
  first_thread_ = static_cast<std::uint32_t>(gpus_.size());
  for (GpuId gpu = 0; gpu < gpu_count_; ++gpu) {
    Gpu threads;
    threads.origin = Origin(first_thread_origin_ + gpu);
    threads.loop = gpus_[gpu].loop;
    threads.shared = false;
    gpus_.push_back(std::move(threads));
  }
}

void ComputeDevices::begin_on_thread(GpuId gpu, JobId job, std::uint32_t handle, Time work) {
  NETSIM_CHECK(first_thread_ != 0, "a task begins on a thread, and the devices have none");
  begin(first_thread_ + gpu, {job, handle, gpu, 0, kFullRate, nullptr}, work);
}

void ComputeDevices::begin(std::uint32_t number, Running task, Time work) {
  Gpu& gpu = gpus_[number];
  settle(gpu);
  task.left = static_cast<Amount>(work) << kAmountShift;
  note_begin(gpu, task);
  gpu.running.push_back(task);
  set_rates(gpu);
  plan(number);
}

void ComputeDevices::drop(GpuId number, JobId job) {
  for (const std::uint32_t device : devices_of(number)) {
    Gpu& gpu = gpus_[device];
    const auto of_job = [&](const Running& running) { return running.job == job && running.gpu == number; };
    if (std::none_of(gpu.running.begin(), gpu.running.end(), of_job)) continue;
    settle(gpu);
    gpu.running.erase(std::remove_if(gpu.running.begin(), gpu.running.end(), of_job), gpu.running.end());
    ++gpu.generation;
    if (!gpu.running.empty()) plan(device);
  }
}

void ComputeDevices::change_communications(GpuId number, Stream stream, int communications, int channels) {
  if (!slows(stream) && !holds(stream)) return;
  Gpu& gpu = gpus_[number];
  if (slows(stream)) gpu.communications += static_cast<std::uint32_t>(communications);
  if (holds(stream)) gpu.held += static_cast<std::uint32_t>(channels);
  const Amount now = slower(gpu);
  if (now == gpu.slower) return;
  if (!gpu.running.empty()) settle(gpu);  // settles at the old rate
  gpu.slower = now;
  if (gpu.running.empty()) return;
  set_rates(gpu);
  plan(number);
}

// Ends the first of the tasks that need the least time.
void ComputeDevices::compute_done(const Event& event) {
  Gpu& gpu = gpus_[event.target];
  if (event.argument != gpu.generation) return;
  settle(gpu);
  const auto first = std::min_element(
      gpu.running.begin(), gpu.running.end(),
      [](const Running& a, const Running& b) { return a.left * a.slower < b.left * b.slower; });
  NETSIM_CHECK(first != gpu.running.end() && first->left <= 0, "a computation ends that has work left");
  const Running ended = *first;
  gpu.running.erase(first);
  note_end(gpu, ended);
  if (!gpu.running.empty()) plan(event.target);
  listener_->compute_done(ended.gpu, ended.job, ended.handle);
}

// Subtracts the work done since the last change of rate.
void ComputeDevices::settle(Gpu& gpu) const {
  const Time now = gpu.loop->now();
  const Amount passed = static_cast<Amount>(now - gpu.updated) << (kAmountShift + kFactorShift);
  for (Running& running : gpu.running) running.left -= passed / divisor(gpu, running);
  gpu.updated = now;
}

void ComputeDevices::plan(std::uint32_t number) {
  Gpu& gpu = gpus_[number];
  Time least = time_for(gpu, gpu.running.front());
  for (const Running& running : gpu.running) least = std::min(least, time_for(gpu, running));
  gpu.loop->schedule(gpu.updated + least, gpu.origin, EventKind::compute_done, number, ++gpu.generation);
}

// Returns the full rate divided by the rate of the task, in 2^-16.
ComputeDevices::Amount ComputeDevices::divisor(const Gpu& gpu, const Running& task) {
  return gpu.shared ? task.slower * static_cast<Amount>(gpu.running.size()) : task.slower;
}

// Returns the value of Gpu::slower for the GPU's communications and held SMs, in 2^-16.
ComputeDevices::Amount ComputeDevices::slower(const Gpu& gpu) const {
  const Amount factor = gpu.communications > 0 ? slowdown_ : kFullRate;
  if (gpu.held == 0) return factor;
  const std::uint32_t left = gpu.multiprocessors - std::min(gpu.held, gpu.multiprocessors);
  return factor * gpu.multiprocessors / std::max(1U, left);
}

// Returns the factor of a task with a demand at the GPU's clock, in 2^-16.
ComputeDevices::Amount ComputeDevices::slower_by_power(const Gpu& gpu, const TaskDemand& demand) const {
  const Amount factor = gpu.communications > 0 ? slowdown_ : kFullRate;
  const double exact = static_cast<double>(factor) * demand.slowdown(gpu.held, gpu.mhz);
  return std::max<Amount>(1, static_cast<Amount>(exact + 0.5));
}

// Brings the history of the GPU's work up to the beginning of a task.
void ComputeDevices::note_begin(Gpu& gpu, const Running& task) const {
  if (task.demand == nullptr) return;
  if (gpu.history == nullptr) gpu.history = std::make_unique<ClockHistory>();
  gpu.history->advance(task.demand->law(), gpu.updated, gpu.running.empty());
}

void ComputeDevices::note_end(Gpu& gpu, const Running& task) const {
  if (task.demand == nullptr) return;
  gpu.history->advance(task.demand->law(), gpu.updated, false);
  gpu.history->add(task.demand->law(), task.demand->beside(gpu.held), gpu.mhz);
}

// Sets the factors of all running tasks. Those with a demand share a clock.
void ComputeDevices::set_rates(Gpu& gpu) const {
  std::vector<KernelDemand> kernels;
  const PowerLaw* law = nullptr;
  for (const Running& running : gpu.running) {
    if (running.demand == nullptr) continue;
    law = &running.demand->law();
    const std::vector<KernelDemand>& more = running.demand->beside(gpu.held);
    kernels.insert(kernels.end(), more.begin(), more.end());
  }
  if (law != nullptr) gpu.mhz = gpu.history->clock(*law, std::move(kernels));
  for (Running& running : gpu.running)
    running.slower = running.demand == nullptr ? gpu.slower : slower_by_power(gpu, *running.demand);
}

// Returns the time that the task takes at the present rate, rounded up.
Time ComputeDevices::time_for(const Gpu& gpu, const Running& task) {
  if (task.left <= 0) return 0;
  const Amount unit = Amount{1} << (kAmountShift + kFactorShift);
  return bounded_time((task.left * divisor(gpu, task) + unit - 1) / unit);
}

Time ComputeDevices::expected_end(GpuId number, JobId job, std::uint32_t handle) const {
  for (const std::uint32_t device : devices_of(number)) {
    const Gpu& gpu = gpus_[device];
    for (const Running& running : gpu.running) {
      if (running.job == job && running.handle == handle && running.gpu == number)
        return gpu.updated + time_for(gpu, running);
    }
  }
  return gpus_[number].updated;
}

}  // namespace netsim
