#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/runtime/byte_text.h"
#include "core/runtime/placer.h"

namespace millrace {
namespace {

constexpr int kListedAlternatives = 8;

class RoundRobin {
 public:
  explicit RoundRobin(const PlacementProblem& problem)
      : problem_(problem),
        graph_(*problem.graph),
        variable_bytes_(problem.devices.size()),
        variables_(problem.devices.size()) {}

  std::vector<PlacementChoice> Run() {
    choices_.resize(problem_.groups.size());
    std::vector<int> sources;
    for (int g = 0; g < static_cast<int>(problem_.groups.size()); ++g) {
      const PlacementProblem::Group& group = problem_.groups[g];
      const auto [bytes, variables] = VariablesOf(group);
      if (group.candidates.size() == 1) {
        choices_[g] = {group.candidates[0], "the only candidate", {}};
      } else if (variables > 0) {
        choices_[g] = NextInTurn(Preferred(group.candidates));
      } else if (IsSource(g)) {
        sources.push_back(g);
        continue;
      } else {
        choices_[g] = BesideInputs(g, Preferred(group.candidates));
      }
      int64_t& so_far = variable_bytes_[choices_[g].device];
      so_far += std::min(bytes, kMost - so_far);
      variables_[choices_[g].device] += variables;
    }
    // What has no inputs goes to its users, which are all placed by now (or sources themselves).
    if (!sources.empty()) FindUsers(sources);
    for (int g : sources) choices_[g] = BesideUsers(g, Preferred(problem_.groups[g].candidates));
    return std::move(choices_);
  }

 private:
  std::string DeviceText(int device) const { return problem_.devices[device].name.ToString(); }

  // An accelerator is preferred to the processor.
  std::vector<int> Preferred(const std::vector<int>& candidates) const {
    std::vector<int> result;
    for (int device : candidates) {
      if (*problem_.devices[device].name.type != "CPU") result.push_back(device);
    }
    return result.empty() ? candidates : result;
  }

  // Bytes and number of the group's variables; handles of one variable are one.
  std::pair<int64_t, int> VariablesOf(const PlacementProblem::Group& group) const {
    std::map<std::string, int64_t> bytes;
    for (NodeId id : group.nodes) {
      const Node& node = *graph_.node(id);
      if (!node.op().Has(Trait::kVariable) || node.num_outputs() == 0) continue;
      std::string name = node.attrs().GetOr<std::string>("shared_name", "");
      if (name.empty()) name = node.name();
      bytes[name] =
          LeastBytes(node.attrs().GetOr<DType>("dtype", DType::kInvalid), node.output_shape(0));
    }
    int64_t sum = 0;
    for (const auto& [name, size] : bytes) sum += std::min(size, kMost - sum);
    return {sum, static_cast<int>(bytes.size())};
  }

  bool IsSource(int g) const {
    for (NodeId id : problem_.groups[g].nodes) {
      for (const Port& input : graph_.node(id)->inputs()) {
        if (problem_.group_of_node[input.node] != g) return false;
      }
    }
    return true;
  }

  // Fewest bytes, then fewest variables, then the first.
  PlacementChoice NextInTurn(const std::vector<int>& candidates) const {
    PlacementChoice choice;
    choice.device = *std::min_element(candidates.begin(), candidates.end(), [&](int a, int b) {
      return std::pair(variable_bytes_[a], variables_[a]) <
             std::pair(variable_bytes_[b], variables_[b]);
    });
    choice.reason =
        StrCat("fewest bytes of variables so far: ", BytesText(variable_bytes_[choice.device]));
    for (int device : candidates) {
      if (device == choice.device) continue;
      choice.alternatives.push_back(
          StrCat(DeviceText(device), ": ", BytesText(variable_bytes_[device]), " of variables"));
    }
    Shorten(choice.alternatives);
    return choice;
  }

  PlacementChoice BesideInputs(int g, const std::vector<int>& candidates) const {
    std::map<int, int64_t> bytes;  // by device
    std::map<int, std::pair<int64_t, Port>> largest;
    std::vector<Port> seen;
    for (NodeId id : problem_.groups[g].nodes) {
      for (const Port& input : graph_.node(id)->inputs()) seen.push_back(input);
    }
    std::sort(seen.begin(), seen.end());
    seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
    for (const Port& input : seen) {
      const int from = problem_.group_of_node[input.node];
      if (from < 0 || from == g || choices_[from].device < 0) continue;
      const int device = choices_[from].device;
      const int64_t size = LeastBytes(graph_.dtype(input), graph_.shape(input));
      bytes[device] += std::min(size, kMost - bytes[device]);
      auto [entry, added] = largest.try_emplace(device, size, input);
      if (size > entry->second.first) entry->second = {size, input};
    }
    PlacementChoice choice = Most(candidates, bytes, "of inputs");
    const auto best = largest.find(choice.device);
    choice.reason = best == largest.end()
                        ? "no input says where"
                        : StrCat("beside '", graph_.PortName(best->second.second), "', as ",
                                 BytesText(bytes[choice.device]), " of inputs are there");
    return choice;
  }

  // By device: how many groups there read from a source.
  void FindUsers(const std::vector<int>& sources) {
    users_.resize(problem_.groups.size());
    std::vector<bool> is_source(problem_.groups.size());
    for (int g : sources) is_source[g] = true;
    for (int g = 0; g < static_cast<int>(problem_.groups.size()); ++g) {
      if (is_source[g]) continue;
      for (NodeId id : problem_.groups[g].nodes) {
        for (const Port& input : graph_.node(id)->inputs()) {
          const int from = problem_.group_of_node[input.node];
          if (from >= 0 && is_source[from]) ++users_[from][choices_[g].device];
        }
      }
    }
  }

  PlacementChoice BesideUsers(int g, const std::vector<int>& candidates) const {
    PlacementChoice choice = Most(candidates, users_[g], "");
    const auto found = users_[g].find(choice.device);
    choice.reason = found == users_[g].end()
                        ? "no user says where"
                        : StrCat("beside its users, of which ", found->second, " are there");
    return choice;
  }

  // The candidate with most of something; the first one of equals.
  PlacementChoice Most(const std::vector<int>& candidates, const std::map<int, int64_t>& amounts,
                       absl::string_view what) const {
    PlacementChoice choice;
    int64_t most = -1;
    for (int device : candidates) {
      const auto found = amounts.find(device);
      const int64_t amount = found == amounts.end() ? 0 : found->second;
      if (amount <= most) continue;
      most = amount;
      choice.device = device;
    }
    for (int device : candidates) {
      if (device == choice.device) continue;
      const auto found = amounts.find(device);
      const int64_t amount = found == amounts.end() ? 0 : found->second;
      choice.alternatives.push_back(StrCat(DeviceText(device), ": ",
                                           what.empty()
                                               ? StrCat(amount, amount == 1 ? " user" : " users")
                                               : StrCat(BytesText(amount), " ", what)));
    }
    Shorten(choice.alternatives);
    return choice;
  }

  static void Shorten(std::vector<std::string>& alternatives) {
    if (alternatives.size() <= kListedAlternatives) return;
    const size_t more = alternatives.size() - kListedAlternatives;
    alternatives.resize(kListedAlternatives);
    alternatives.push_back(StrCat("and ", more, " more devices"));
  }

  static constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const PlacementProblem& problem_;
  const Graph& graph_;
  std::vector<int64_t> variable_bytes_;  // by device
  std::vector<int> variables_;
  std::vector<PlacementChoice> choices_;
  std::vector<std::map<int, int64_t>> users_;  // by group and device; of sources only
};

}  // namespace

StatusOr<std::vector<PlacementChoice>> RoundRobinPolicy::Choose(
    const PlacementProblem& problem) const {
  return RoundRobin(problem).Run();
}

}  // namespace millrace
