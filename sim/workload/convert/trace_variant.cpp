// trace: a trace or another workload with changes, for questions of the kind "what if".
//
//   kind: trace
//   file: step.0.et               # a file, a folder, or a sequence of them
//   compute: 0.5                  # factor of the times on the GPU: twice as fast
//   kernels:                      # by name; the first one that fits counts, before `compute`
//     - {name: "*gemm*", factor: 0.4}
//     - {name: attention, m: 4096, n: 4096, k: 128}    # the compute model's time of this product
//     - {name: "*elementwise*", recorded: true}        # the compute model's time by the recorded shape
//   replicas: 8                   # data-parallel replicas, of which
//   data: [0, 4]                  # this is a group in the trace
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/core/errors.h"
#include "sim/core/input_file.h"
#include "sim/core/registry.h"
#include "sim/core/text.h"
#include "sim/core/time_limits.h"
#include "sim/workload/convert/data_replicas.h"
#include "sim/workload/convert/listed_program.h"
#include "sim/workload/program/program.h"
#include "sim/workload/trace/kineto_shape.h"
#include "sim/workload/workload.h"

namespace netsim {
namespace {

constexpr Range<double> kFactors{0, 1e6};
constexpr std::int64_t kLargestSide = 1'000'000;

// KernelRule: the time of the kernels with a name.
struct KernelRule {
  std::string name;
  double factor = 1;
  bool recorded = false;
  std::int64_t m = 0, n = 0, k = 0;
  bool has_shape() const { return m > 0 && n > 0 && k > 0; }
};

const Parameters<KernelRule>& kernel_rule_parameters() {
  using P = KernelRule;
  static const auto parameters =
      Parameters<P>()
          .text("name", &P::name, "name of the kernels, in which * stands for any characters")
          .required()
          .real("factor", &P::factor, kFactors, "factor of their times")
          .flag("recorded", &P::recorded,
                "the compute model tells their times by the shapes that the trace recorded (Kineto with "
                "record_shapes)")
          .integer("m", &P::m, {0, kLargestSide},
                   "rows of a product of matrices, m x k by k x n, whose time the compute model tells "
                   "instead; 0: none")
          .integer("n", &P::n, {0, kLargestSide}, "columns of that product")
          .integer("k", &P::k, {0, kLargestSide}, "inner side of that product");
  return parameters;
}

struct TraceVariantParameters {
  double compute = 1, cpu = 1;
  std::int64_t replicas = 0;
  ConfigNode kernels, data;
};

const Parameters<TraceVariantParameters>& trace_variant_parameters() {
  using P = TraceVariantParameters;
  static const auto parameters =
      Parameters<P>()
          .real("compute", &P::compute, kFactors, "factor of the times of computations on the GPU")
          .real("cpu", &P::cpu, kFactors,
                "factor of the times on threads of the ranks' processes and on CPUs")
          .integer("replicas", &P::replicas, {0, 1 << 20},
                   "number of data-parallel replicas, each of which does what the first one does; 0: as in "
                   "the trace")
          .list("kernels", &P::kernels,
                "kernels by name: {name, factor} or {name, m, n, k}; the first entry that fits counts")
          .list("data", &P::data,
                "the ranks of one data-parallel group of the trace, with `replicas`; the groups are those "
                "whose ranks "
                "are as far apart");
  return parameters;
}

Kernel product_of(const KernelRule& rule, const std::string& name) {
  Kernel product;
  product.kind = Kernel::Kind::gemm;
  product.name = name;
  product.m = rule.m;
  product.n = rule.n;
  product.k = rule.k;
  return product;
}

// Returns whether a name fits a pattern in which * stands for any characters.
bool fits_pattern(std::string_view pattern, std::string_view name) {
  std::size_t p = 0, n = 0, star = std::string_view::npos, after_star = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      after_star = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p, ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++after_star;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

class TraceVariant final : public WorkloadKind {
 public:
  // `node` is the description, for places in errors.
  TraceVariant(InputPaths input, TraceVariantParameters parameters, const ConfigNode& node)
      : node_(node), input_(std::move(input)), parameters_(std::move(parameters)) {
    for (const ConfigNode& item : parameters_.kernels.items()) {
      rules_.push_back(kernel_rule_parameters().parse(item));
      const KernelRule& rule = rules_.back();
      if (!rule.has_shape() && (rule.m > 0 || rule.n > 0 || rule.k > 0))
        item.fail(fmt::format("m is {}, n {} and k {}; allowed: three sides from 1 on, or none", rule.m,
                              rule.n, rule.k));
      if (!is_allowed_size(product_of(rule, ""))) item.fail("the matrices are too large for one kernel");
      const int ways =
          (rule.has_shape() ? 1 : 0) + (item.find("factor") != nullptr ? 1 : 0) + (rule.recorded ? 1 : 0);
      if (ways != 1)
        item.fail("an entry has one of these: a factor, the shape of a product (m, n, k), or recorded: true");
    }
    if (parameters_.replicas == 0 && !parameters_.data.is_null())
      parameters_.data.fail(
          "'replicas' is 0 or missing; allowed with 'data': the number of replicas, from 1 on");
  }

  std::unique_ptr<TaskSource> tasks(const WorkloadContext& context) const override {
    WorkloadContext plain = context;
    plain.assignments.clear();
    plain.named_at = node_.find("file")->place();
    if (std::any_of(rules_.begin(), rules_.end(), [](const KernelRule& rule) { return rule.recorded; }))
      plain.times_by_shape = [this](const std::string& kernel) {
        const KernelRule* rule = rule_of(kernel);
        return rule != nullptr && rule->recorded;
      };
    const std::unique_ptr<TaskSource> source = load_workload(input_, plain);
    std::vector<std::uint64_t> uses(rules_.size(), 0);
    ProgramChanges changes;
    changes.work = [&](TaskKind kind, const Work& work) { return changed(kind, work, uses); };
    std::optional<DataReplicas> replicas;
    if (parameters_.replicas > 0) replicate(*source, replicas, changes);
    changes.notes = notes();
    std::unique_ptr<TaskSource> result = list_program(*source, changes);
    for (std::size_t i = 0; i < rules_.size(); ++i) {
      if (uses[i] == 0) refuse_rule(i, *source);
    }
    return result;
  }

 private:
  // Returns the rule that takes a kernel from `rule`, or null where some kernel has `rule` or none fits it.
  const KernelRule* first_other(const KernelRule& rule, const TaskSource& source) const {
    const KernelRule* other = nullptr;
    for (const Work& work : source.works()) {
      for (const Kernel& kernel : work.kernels) {
        if (!fits_pattern(rule.name, kernel.name)) continue;
        const KernelRule* first = rule_of(kernel.name);
        if (first == &rule) return nullptr;
        if (other == nullptr) other = first;
      }
    }
    return other;
  }
  // Throws a ConfigError for a rule without effect.
  [[noreturn]] void refuse_rule(std::size_t rule, const TaskSource& source) const {
    const ConfigNode& item = parameters_.kernels.items()[rule];
    const std::string name = printable(rules_[rule].name);
    const KernelRule* first = first_other(rules_[rule], source);
    if (first != nullptr)
      item.fail(
          fmt::format("all kernels that fit '{}' fit the entry '{}' before it, which counts; put this "
                      "entry first",
                      name, printable(first->name)));
    if (rules_[rule].recorded) {
      const std::vector<std::string> notes = source.notes();
      const auto untimed = std::find_if(notes.begin(), notes.end(), [](const std::string& note) {
        return note.starts_with(kUntimedKernels);
      });
      item.fail(
          fmt::format("no kernel of the trace that fits '{}' has a recorded shape that tells its work "
                      "(PyTorch's profiler: record_shapes){}",
                      name, untimed == notes.end() ? "" : "; " + *untimed));
    }
    item.fail("no kernel of the trace fits '" + name + "' (netsim describe-trace shows names)");
  }

  // Returns the first rule that fits the name of a kernel, or null.
  const KernelRule* rule_of(const std::string& kernel) const {
    const auto rule = std::find_if(rules_.begin(), rules_.end(),
                                   [&](const KernelRule& r) { return fits_pattern(r.name, kernel); });
    return rule == rules_.end() ? nullptr : &*rule;
  }
  Work changed(TaskKind kind, const Work& given, std::vector<std::uint64_t>& uses) const {
    Work work = given;
    for (Kernel& kernel : work.kernels) change(kind, kernel, uses);
    return work;
  }
  void change(TaskKind kind, Kernel& kernel, std::vector<std::uint64_t>& uses) const {
    double factor = kind == TaskKind::compute ? parameters_.compute : parameters_.cpu;
    const KernelRule* rule = rule_of(kernel.name);
    if (rule != nullptr) {
      const bool by_shape = kernel.kind != Kernel::Kind::fixed;
      uses[static_cast<std::size_t>(rule - rules_.data())] += by_shape || !rule->recorded ? 1 : 0;
      if (!rule->recorded) factor = rule->factor;
    }
    if (rule != nullptr && rule->has_shape() && kind == TaskKind::compute) {
      kernel = product_of(*rule, kernel.name);
    } else if (kernel.kind == Kernel::Kind::fixed && factor != 1) {
      kernel.duration = std::min(static_cast<Time>(static_cast<double>(kernel.duration) * factor),
                                 Time{ProgramLimits::kKernelTime});
    }
  }

  // Throws a ConfigError that lists the groups of rank 0 which may be the data-parallel one.
  [[noreturn]] void refuse_replicas(const TaskSource& source) const {
    std::set<std::vector<RankId>> groups;
    source.for_each_task(0, [&](const Task& task) {
      if (task.kind() == TaskKind::collective && task.stream == Stream::dp)
        groups.insert(source.group(task.collective().group));
    });
    std::string known;
    for (const std::vector<RankId>& group : groups) {
      if (group.size() < 2 || groups.size() > 8) continue;
      std::string ranks;
      for (std::size_t i = 0; i < std::min<std::size_t>(group.size(), 8); ++i)
        ranks += fmt::format("{}{}", i == 0 ? "" : ", ", group[i] + 0U);
      known += fmt::format("{}[{}{}]", known.empty() ? "; rank 0 has these groups of stream dp: " : ", ",
                           ranks, group.size() > 8 ? ", ..." : "");
    }
    node_.find("replicas")
        ->fail("'data' is missing: the ranks of one data-parallel group of the trace" + known);
  }

  void replicate(const TaskSource& source, std::optional<DataReplicas>& replicas,
                 ProgramChanges& changes) const {
    if (parameters_.data.is_null()) refuse_replicas(source);
    std::vector<RankId> group;
    for (const ConfigNode& rank : parameters_.data.items()) {
      const std::int64_t number = read_integer(rank);
      if (number < 0 || number >= source.ranks())
        rank.fail(fmt::format("rank {}; allowed: 0 to {}", number, source.ranks() - 1));
      group.emplace_back(static_cast<std::uint32_t>(number));
    }
    replicas.emplace(source.ranks(), group, static_cast<std::uint32_t>(parameters_.replicas),
                     parameters_.data.place());
    if (!replicas->problem().empty()) parameters_.data.fail(replicas->problem());
    if (replicas->ranks() > ProgramLimits::kRanks)
      parameters_.data.fail(
          fmt::format("{} ranks; allowed: at most {}", replicas->ranks(), ProgramLimits::kRanks));
    changes.ranks = replicas->ranks();
    changes.original = [&replicas](RankId rank) { return replicas->original(rank); };
    changes.peer = [&replicas](RankId peer, RankId rank) { return replicas->peer(peer, rank); };
    changes.group = [&replicas](const std::vector<RankId>& members, RankId rank) {
      return replicas->group(members, rank);
    };
  }

  std::vector<std::string> notes() const {
    std::vector<std::string> notes;
    if (parameters_.compute != 1)
      notes.push_back(fmt::format("the times of computations are multiplied by {} (workload.compute)",
                                  parameters_.compute));
    if (parameters_.cpu != 1)
      notes.push_back(fmt::format("the times on CPUs are multiplied by {} (workload.cpu)", parameters_.cpu));
    for (const KernelRule& rule : rules_) {
      if (rule.recorded) {
        notes.push_back(
            fmt::format("the compute model times the kernels '{}' by their recorded shapes: products as they "
                        "are, attention "
                        "without its mask, others by the bytes of their inputs and of a result as large as "
                        "the largest input",
                        printable(rule.name)));
        continue;
      }
      notes.push_back(rule.has_shape()
                          ? fmt::format("the compute model times the kernels '{}' as products {} x {} x {}",
                                        printable(rule.name), rule.m, rule.n, rule.k)
                          : fmt::format("the times of the kernels '{}' are multiplied by {}",
                                        printable(rule.name), rule.factor));
    }
    if (parameters_.replicas > 0)
      notes.push_back(
          fmt::format("number of data-parallel replicas, which do what the first one of the trace does, with "
                      "the same bytes in each of their collectives, so that the batch grows with them: {}",
                      parameters_.replicas));
    return notes;
  }

  ConfigNode node_;
  InputPaths input_;
  TraceVariantParameters parameters_;
  std::vector<KernelRule> rules_;
};

ParameterTable trace_variant_table() {
  ParameterTable table = trace_variant_parameters().table();
  for (ParameterInfo& info : table.edit()) {
    if (info.name == "kernels") info.children = kernel_rule_parameters().table();
  }
  ParameterInfo file;
  file.name = "file";
  file.type = "text";
  file.doc = "the trace: a file, a folder, or a sequence of them";
  table.edit().insert(table.edit().begin(), file);
  return table;
}

const Registration<WorkloadKind> kTraceVariant{
    "trace",
    "a trace of another tool, or another file of a workload, with other times or data-parallel replicas",
    trace_variant_table(), [](const ConfigNode& node) {
      TraceVariantParameters parameters =
          trace_variant_parameters().parse(node.is_scalar() ? ConfigNode() : node, {"kind", "file"});
      const ConfigNode* file = node.find("file");
      if (file == nullptr) node.fail("'file' is missing: the trace, a file, a folder, or a sequence of them");
      return std::make_unique<TraceVariant>(named_input(*file), std::move(parameters), node);
    }};

}  // namespace
}  // namespace netsim
