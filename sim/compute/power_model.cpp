#include "sim/compute/power_model.h"

#include <algorithm>
#include <string>
#include <vector>

#include "sim/compute/attention_schedule.h"
#include "sim/compute/gemm_plan.h"
#include "sim/compute/peak_rates.h"
#include "sim/compute/power_law.h"

namespace netsim {
namespace {

constexpr double kPicojoule = 1e-12;

// FlashAttention-2 on an H100 SXM5 (FlashAttention-3, arXiv 2407.08608, figures 5 and 6): heads of 128
// elements, 16,384 tokens in sequences of 512 to 16,384. The forward is causal and reaches 191 to 335
// TFLOP/s, the backward is not and reaches 214 to 322. The constants were fitted to these twelve rates.
struct AttentionConstants {
  double efficiency, fill;
};
constexpr AttentionConstants kFlashForward{0.355, 208}, kFlashBackward{0.315, 256};

class PowerModel final : public ComputeModel {
 public:
  PowerModel(const ClockedGpu& p, const std::string& note)
      : p_(p),
        note_(note),
        law_({p.power_limit, p.static_power, p.active_power, p.voltage_slope, p.clock_mhz, p.lowest_clock_mhz,
              p.clock_step_mhz, p.power_window}) {}

  double peak_flops() const override { return p_.peak_tflops * 1e12; }
  Bytes memory() const override { return p_.memory; }
  std::uint32_t multiprocessors() const override { return static_cast<std::uint32_t>(p_.multiprocessors); }
  const PowerLaw* power_law() const override { return &law_; }

  std::string objection(const Kernel& kernel) const override { return objection_to(kernel, p_); }
  std::vector<std::string> notes(const std::vector<const Kernel*>& /*kernels*/) const override {
    return note_.empty() ? std::vector<std::string>{} : std::vector<std::string>{note_};
  }

  Time duration(const Kernel& kernel) const override { return sustained_time({whole_demand(kernel, 0)}); }
  Time duration(const Work& work) const override { return sustained_time(demands(work, 0)); }

  std::vector<KernelDemand> demands(const Work& work, std::int64_t held) const override {
    std::vector<KernelDemand> demands;
    demands.reserve(work.kernels.size());
    for (const Kernel& kernel : work.kernels) demands.push_back(demand(kernel, held));
    return demands;
  }

  KernelWaves waves(const Kernel& kernel) const override {
    const Time all = duration(kernel);
    if (kernel.kind != Kernel::Kind::gemm) return {0, all, 1, 1, 1};
    return waves_at(kernel, std::min(p_.launch, all), all);
  }

 private:
  // Returns the waves of a GEMM of which the first begins and the last ends at these times.
  KernelWaves waves_at(const Kernel& kernel, Time begin, Time end) const {
    const TensorCores cores = cores_for(kernel);
    const GemmPlan plan = plan_gemm(kernel, cores);
    const std::int64_t in_wave = std::min(
        plan.blocks, cores.cluster * usable_clusters(beside_clusters(cores, kernel.held_multiprocessors), 0));
    return {begin, end, (plan.blocks + in_wave - 1) / in_wave, plan.blocks, in_wave};
  }
  double flops_per_cycle(Precision precision) const {
    return peak_tflops_of(p_, precision) * 1e6 / static_cast<double>(p_.peak_clock_mhz * p_.multiprocessors);
  }
  // Transformer Engine accumulates FP8 products exactly in the backward only (_2X_ACC_DGRAD, _2X_ACC_WGRAD).
  // The sums are assumed to be added while the block multiplies nothing.
  TensorCores cores_for(const Kernel& gemm) const {
    const double depth = static_cast<double>(p_.pipeline_depth);
    const bool promotes = gemm.precision == Precision::fp8 && gemm.backward;
    return {p_.multiprocessors,
            p_.gpcs,
            flops_per_cycle(gemm.precision),
            p_.l2_bytes_per_cycle,
            depth * 2 * 256 * 128 / flops_per_cycle(Precision::half),
            promotes ? static_cast<double>(p_.fp8_promotion_lanes) : 0,
            p_.cluster_blocks,
            p_.persistent_gemms};
  }
  // Returns the SMs beside `taken` ones whose kernels run in clusters. Clusters take whole TPCs.
  static TensorCores beside_clusters(TensorCores cores, std::int64_t taken) {
    cores.multiprocessors = std::max<std::int64_t>(2, cores.multiprocessors - (taken + 1) / 2 * 2);
    return cores;
  }
  // Returns the waves of a plan beside `held` channels and Kernel::held_multiprocessors. The latter run in
  // clusters of two: cga_size in NeMo's userbuffers.py, and clusterDim in DeepEP's launch.cuh. GEMMs are
  // launched for the SMs beside them (math_sm_count in Transformer Engine, set_num_sms() in DeepGEMM), but
  // nobody tells them of NCCL's channels.
  double waves_beside(const GemmPlan& plan, const Kernel& gemm, const TensorCores& cores,
                      std::int64_t held) const {
    const TensorCores launched = beside_clusters(cores, gemm.held_multiprocessors);
    const std::int64_t running = p_.channel_cluster == 1
                                     ? usable_clusters(launched, held)
                                     : usable_clusters(beside_clusters(launched, held), 0);
    return waves_of(plan, launched, running, gemm.pieces);
  }

  // Returns the demand of the kernel's slice. Beside held multiprocessors all slices become longer alike.
  KernelDemand demand(const Kernel& kernel, std::int64_t held) const {
    KernelDemand demand = whole_demand(kernel, held);
    if (kernel.slice.count == 1 || kernel.kind != Kernel::Kind::gemm) return demand;
    const KernelWaves of_kernel = waves_at(kernel, 0, 0);
    const std::int64_t before = of_kernel.waves_before(kernel.slice);
    KernelSlice next = kernel.slice;
    ++next.index;
    const double share =
        static_cast<double>(of_kernel.waves_before(next) - before) / static_cast<double>(of_kernel.waves);
    if (kernel.slice.index > 0) demand.fixed_time = 0;
    for (double* part : {&demand.cycles, &demand.memory_time, &demand.core_energy, &demand.memory_energy})
      *part *= share;
    return demand;
  }
  KernelDemand whole_demand(const Kernel& kernel, std::int64_t held) const {
    const std::int64_t all_held = taken(kernel, held);
    switch (kernel.kind) {
      case Kernel::Kind::fixed:
        return {.fixed_time = static_cast<double>(kernel.duration)};
      case Kernel::Kind::memory:
        return with_bytes({.cycles = atomic_cycles(kernel)}, static_cast<double>(kernel.bytes), all_held);
      case Kernel::Kind::gemm:
        return with_bytes(gemm_demand(kernel, held), gemm_traffic(kernel), all_held);
      case Kernel::Kind::attention:
        return with_bytes(attention_demand(kernel, all_held), static_cast<double>(kernel.bytes), all_held);
    }
    return {};
  }
  // Adds the launch and the bytes of a kernel. Communication leaves at least half of the bandwidth, and what
  // it moves beside the kernel takes energy.
  KernelDemand with_bytes(KernelDemand demand, double bytes, std::int64_t held) const {
    const double bytes_per_ps = static_cast<double>(p_.hbm_bandwidth) / 8e12 * p_.hbm_efficiency;
    const double moved =
        std::min(static_cast<double>(p_.held_bandwidth) / 8e12 * static_cast<double>(held), bytes_per_ps / 2);
    demand.fixed_time = static_cast<double>(p_.launch);
    demand.memory_time = bytes / (bytes_per_ps - moved);
    demand.memory_energy = bytes * p_.byte_energy * kPicojoule;
    demand.watts_beside = moved * kPsPerSecond * p_.byte_energy * kPicojoule;
    return demand;
  }
  double atomic_cycles(const Kernel& kernel) const {
    if (p_.atomic_adds_per_cycle == 0) return 0;
    return static_cast<double>(kernel.atomic_adds) /
           (p_.atomic_adds_per_cycle * static_cast<double>(p_.multiprocessors));
  }
  // Returns the multiprocessors that communication takes; the kernel keeps at least one.
  std::int64_t taken(const Kernel& kernel, std::int64_t held) const {
    return std::min(kernel.held_multiprocessors + held, p_.multiprocessors - 1);
  }
  static double operations(const Kernel& kernel) {
    return 2.0 * static_cast<double>(kernel.m) * static_cast<double>(kernel.n) *
           static_cast<double>(kernel.k) * static_cast<double>(kernel.batch);
  }
  static double energy_of(const Kernel& kernel, double half) {
    return operations(kernel) * half * kPicojoule * static_cast<double>(operand_bits(kernel.precision)) / 16;
  }
  KernelDemand gemm_demand(const Kernel& gemm, std::int64_t held) const {
    const TensorCores cores = cores_for(gemm);
    const GemmPlan plan = plan_gemm(gemm, cores);
    return {.cycles = waves_beside(plan, gemm, cores, held) * plan.block_cycles,
            .core_energy = energy_of(gemm, p_.operation_energy)};
  }
  KernelDemand attention_demand(const Kernel& attention, std::int64_t held) const {
    const AttentionConstants constants = attention_constants(attention.backward);
    const AttentionRates rates{flops_per_cycle(attention.precision), constants.efficiency, constants.fill};
    return {.cycles = attention_cycles(attention, rates, p_.multiprocessors - held),
            .core_energy = energy_of(attention, p_.attention_energy)};
  }
  AttentionConstants attention_constants(bool backward) const {
    if (p_.attention == AttentionKernel::flash_attention_2) return backward ? kFlashBackward : kFlashForward;
    if (backward) return {p_.attention_backward_efficiency, static_cast<double>(p_.attention_backward_fill)};
    return {p_.attention_efficiency, static_cast<double>(p_.attention_fill)};
  }

  // Returns the time of kernels that a GPU repeats for long, one after the other.
  Time sustained_time(const std::vector<KernelDemand>& demands) const {
    if (PowerLaw::time(demands, p_.clock_mhz) == 0) return 0;  // slices between two ends of waves
    const double time = PowerLaw::time(demands, law_.clock(demands, 0));
    const Time whole = bounded_time(time);
    return static_cast<double>(whole) < time ? whole + 1 : whole;
  }

  ClockedGpu p_;
  std::string note_;
  PowerLaw law_;
};

}  // namespace

std::unique_ptr<ComputeModel> make_power_model(const ClockedGpu& gpu, const std::string& note) {
  return std::make_unique<PowerModel>(gpu, note);
}

}  // namespace netsim
