#include "core/runtime/shape_memo.h"

#include <cstring>

namespace millrace {
namespace {

bool ValuesEqual(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  const size_t bytes = a.byte_size();
  return bytes == b.byte_size() &&
         (bytes == 0 || std::memcmp(a.raw_data(), b.raw_data(), bytes) == 0);
}

}  // namespace

ShapeMemo::~ShapeMemo() {
  const ShapeFacts* facts = head_.load(std::memory_order_acquire);
  while (facts != nullptr) {
    const ShapeFacts* next = facts->next;
    delete facts;
    facts = next;
  }
}

bool ShapeMemo::HostValuesEqual(const ShapeFacts& facts, absl::Span<Tensor* const> inputs,
                                absl::Span<const int32_t> host_inputs) {
  for (size_t i = 0; i < host_inputs.size(); ++i) {
    if (!ValuesEqual(facts.host_values[i], *inputs[host_inputs[i]])) return false;
  }
  return true;
}

const ShapeFacts* ShapeMemo::Add(std::unique_ptr<ShapeFacts>& facts) {
  size_t host_bytes = 0;
  for (const Tensor& value : facts->host_values) host_bytes += value.byte_size();
  if (host_bytes > kMostHostBytes) return facts.get();
  const ShapeFacts* head = head_.load(std::memory_order_acquire);
  while (true) {
    int entries = 0;
    for (const ShapeFacts* entry = head; entry != nullptr; entry = entry->next) {
      // Two steps may miss at once.
      bool equal = entry->inputs == facts->inputs;
      for (size_t i = 0; i < facts->host_values.size() && equal; ++i) {
        equal = ValuesEqual(entry->host_values[i], facts->host_values[i]);
      }
      if (equal) return entry;
      ++entries;
    }
    if (entries >= kMostEntries) return facts.get();
    facts->next = head;
    if (head_.compare_exchange_weak(head, facts.get(), std::memory_order_acq_rel,
                                    std::memory_order_acquire)) {
      return facts.release();
    }
  }
}

}  // namespace millrace
